/** Which dialogs, sidebar and panel are open; the sidebar and the panel survive a reload. */
import { remembered } from './remembered.ts'

export interface DialogChoice {
  label: string
  kind?: 'plain' | 'primary' | 'danger'
  run: () => void | Promise<unknown>
}

/** A confirmation dialog with its choices; it can also be closed without a choice. */
export interface Confirmation {
  title: string
  text: string
  choices: DialogChoice[]
  /** Called if the dialog is closed without a choice. */
  onclose?: () => void
}

/** A question that is answered with one choice, or not at all. */
export interface YesQuestion {
  title: string
  text: string
  label: string
}

export class ViewState {
  overlay: 'palette' | 'help' | 'new' | 'rename' | 'share' | 'export' | undefined = $state()
  /** The query of the palette. */
  query = $state('')
  confirmation: Confirmation | undefined = $state.raw()
  /** A search to run in a terminal when it is shown. */
  terminalSearch: { workerId: string; query: string } | undefined = $state.raw()
  /** The last announcement for screen readers. */
  announcement = $state('')

  readonly #sidebar = remembered('sidebar', true)
  readonly #sidebarWidth = remembered('sidebar.width', 272)
  readonly #panel = remembered<string | null>('panel', null)
  readonly #ended = remembered('sidebar.ended', false)

  get sidebar(): boolean {
    return this.#sidebar.value
  }
  set sidebar(open: boolean) {
    this.#sidebar.value = open
  }

  get sidebarWidth(): number {
    return this.#sidebarWidth.value
  }
  set sidebarWidth(width: number) {
    this.#sidebarWidth.value = Math.round(Math.min(Math.max(width, 200), 480))
  }

  /** The id of the panel on the right, null when it is closed. */
  get panel(): string | null {
    return this.#panel.value
  }
  set panel(id: string | null) {
    this.#panel.value = id
  }

  /** Whether ended sessions are unfolded in the list. */
  get ended(): boolean {
    return this.#ended.value
  }
  set ended(open: boolean) {
    this.#ended.value = open
  }

  /** Whether the open dialog is a form, which shows the errors of its request itself. */
  get hasForm(): boolean {
    return this.overlay !== undefined && this.overlay !== 'palette' && this.overlay !== 'help'
  }

  openPalette(query = ''): void {
    this.query = query
    this.overlay = 'palette'
  }

  close(): void {
    this.overlay = undefined
  }

  confirm(confirmation: Confirmation): void {
    this.confirmation = confirmation
  }

  /** Ask a question; return whether the user agreed. */
  ask({ title, text, label }: YesQuestion): Promise<boolean> {
    return new Promise((resolve) => {
      const no = () => resolve(false)
      this.confirm({ title, text, choices: [{ label: 'Cancel', run: no }, { label, kind: 'primary', run: () => resolve(true) }], onclose: no })
    })
  }

  announce(text: string): void {
    this.announcement = text
  }
}
