/** Everything a person can do, by name: the palette, the shortcuts and the help sheet all read this one list. */
import type { IconName } from '../parts/icons.ts'
import { isSafeWhileTyping, MAC, pressedKeys } from './keys.ts'
import { hasKeys, shownKeys } from './shortcuts.ts'

export type CommandGroup = 'Go to' | 'Session' | 'Worker' | 'View' | 'Help'

export interface Command {
  id: string
  title: string
  group: CommandGroup
  icon?: IconName
  /** As in "Mod+K"; a person may choose others. */
  keys?: string
  /** Other keys for the same. */
  also?: string
  /** More words to find it by. */
  hint?: string
  /** Listed in the help sheet and in the settings; things that come and go, like sessions, are not. */
  listed?: boolean
  when?: () => boolean
  run: () => void
}

/** With Shift these find and copy in the terminal itself. */
const OF_TERMINALS: ReadonlySet<string> = new Set(['Mod+Shift+F', 'Mod+Shift+C'])

type Source = () => readonly Command[]

export class Commands {
  #sources: readonly Source[] = $state.raw([])

  /** Adds commands that are asked for whenever they are needed; answers with the way to take them back. */
  add(source: Source): () => void {
    this.#sources = [...this.#sources, source]
    return () => (this.#sources = this.#sources.filter((each) => each !== source))
  }

  all(): Command[] {
    return this.#sources.flatMap((source) => [...source()])
  }

  available(): Command[] {
    return this.all().filter((command) => command.when?.() ?? true)
  }

  run(id: string): void {
    this.available().find((command) => command.id === id)?.run()
  }

  /** The keys of a command as a person reads them. */
  keys(id: string): string | undefined {
    const command = this.all().find((each) => each.id === id)
    return command && shownKeys(command)
  }

  /** Runs what these keys stand for; says whether there was something. */
  press(event: KeyboardEvent): boolean {
    const keys = pressedKeys(event)
    if (!keys || event.defaultPrevented || (isTyping(event.target) && !isSafeWhileTyping(keys))) return false
    const command = isTerminal(event.target) ? this.#inTerminal(keys) : this.#find(keys)
    if (!command) return false
    event.preventDefault()
    event.stopPropagation()
    command.run()
    return true
  }

  #find(keys: string): Command | undefined {
    return this.available().find((each) => hasKeys(each, keys))
  }

  /** Ctrl+D, Alt+N and their like belong to the program in a terminal; with Shift they are ours, as ⌘ is on a Mac. */
  #inTerminal(keys: string): Command | undefined {
    if (MAC && keys.startsWith('Mod+')) return this.#find(keys)
    if (!/^(?:Mod|Alt)\+/.test(keys)) return this.#find(keys)
    if (!/^(?:Mod|Alt)\+Shift\+/.test(keys) || OF_TERMINALS.has(keys)) return undefined
    return this.#find(keys) ?? this.#find(keys.replace('Shift+', ''))
  }
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}

function isTerminal(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('.xterm') !== null
}
