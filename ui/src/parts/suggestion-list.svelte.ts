/** The state of a list that completes a field: its items, the selected one, and its keys. */
import type { IconName } from './icons.ts'

export interface Suggestion {
  /** Unique in the list. */
  key: string
  label: string
  detail?: string
  icon?: IconName
}

export class SuggestionList {
  /** The id of the list element, which the field names in `aria-controls`. */
  readonly id: string
  readonly #find: () => readonly Suggestion[]
  #selected = $state(0)
  /** The text of the field for which the list was closed. */
  #dismissed: string | undefined = $state()
  readonly #text: () => string

  /** `text` returns the text of the field, `find` the items that complete it. */
  constructor(id: string, text: () => string, find: () => readonly Suggestion[]) {
    this.id = id
    this.#text = text
    this.#find = find
  }

  readonly items: readonly Suggestion[] = $derived.by(() => (this.#dismissed === this.#text() ? [] : this.#find()))

  get selected(): number {
    return Math.min(this.#selected, this.items.length - 1)
  }

  /** The attributes by which a screen reader connects the field with the list. */
  get fieldAttributes(): { 'aria-autocomplete': 'list'; 'aria-controls': string | undefined; 'aria-activedescendant': string | undefined } {
    const open = this.items.length > 0
    return { 'aria-autocomplete': 'list', 'aria-controls': open ? this.id : undefined, 'aria-activedescendant': open ? this.optionId(this.selected) : undefined }
  }

  optionId(n: number): string {
    return `${this.id}-${n}`
  }

  /** Select the first item, because the text has changed. */
  reset(): void {
    this.#selected = 0
    this.#dismissed = undefined
  }

  /** Close the list until the text changes. */
  dismiss(): void {
    this.#dismissed = this.#text()
  }

  /** Handle a key of the field; return the chosen item, or whether the key was used. */
  press(event: KeyboardEvent): Suggestion | boolean {
    const count = this.items.length
    if (!count || event.isComposing || event.altKey || event.ctrlKey || event.metaKey) return false
    if (event.key === 'ArrowDown') this.#selected = (this.selected + 1) % count
    else if (event.key === 'ArrowUp') this.#selected = (this.selected + count - 1) % count
    else if (event.key === 'Escape') this.dismiss()
    else if (event.key === 'Tab' || event.key === 'Enter') return (!event.shiftKey && this.items[this.selected]) || false
    else return false
    return true
  }
}
