/** What is open over and beside the page: palette, help, a question; the sidebar and the panel, which are remembered. */
import { remembered } from './remembered.ts'

export interface Choice {
  label: string
  kind?: 'plain' | 'primary' | 'danger'
  run: () => void | Promise<unknown>
}

/** A question with its answers; not answering is always one. */
export interface Ask {
  title: string
  text: string
  choices: Choice[]
}

export class View {
  overlay: 'palette' | 'help' | 'new' | 'rename' | undefined = $state()
  /** What the palette begins with; `>` narrows it to commands. */
  query = $state('')
  asked: Ask | undefined = $state.raw()
  /** Words a terminal is to be searched for as soon as it is shown. */
  finding: { workerId: string; words: string } | undefined = $state.raw()
  /** Spoken to who does not see the page. */
  spoken = $state('')

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

  openPalette(query = ''): void {
    this.query = query
    this.overlay = 'palette'
  }

  close(): void {
    this.overlay = undefined
  }

  ask(asked: Ask): void {
    this.asked = asked
  }

  speak(words: string): void {
    this.spoken = words
  }
}
