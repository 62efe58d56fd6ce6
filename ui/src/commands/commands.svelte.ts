/** The registry of commands, which the palette, the shortcuts, the help dialog and the settings share. */
import type { IconName } from '../parts/icons.ts'
import { isSafeWhileTyping, MAC, pressedKeys } from './keys.ts'
import { hasKeys, keysText } from './shortcuts.ts'

export type CommandGroup = 'Go to' | 'Session' | 'Tabs' | 'View' | 'Help'

export interface Command {
  id: string
  title: string
  group: CommandGroup
  icon?: IconName
  /** The default shortcut, such as "Mod+K"; the user can change it. */
  keys?: string
  /** A second shortcut. */
  also?: string
  /** More words by which the palette finds the command. */
  hint?: string
  /** Whether the help dialog and the settings list the command; commands for one session or worker are not listed. */
  listed?: boolean
  when?: () => boolean
  run: () => void
}

/** Shortcuts with Shift that a focused terminal handles itself: find and copy. */
const TERMINAL_KEYS: ReadonlySet<string> = new Set(['Mod+Shift+F', 'Mod+Shift+C'])

type Source = () => readonly Command[]

/** All commands of the page, from several sources. */
export class Commands {
  #sources: readonly Source[] = $state.raw([])

  /** Add a function that returns commands whenever they are needed; return a function that removes it. */
  add(source: Source): () => void {
    this.#sources = [...this.#sources, source]
    return () => (this.#sources = this.#sources.filter((each) => each !== source))
  }

  /** Return all commands, also those that cannot be run now. */
  all(): Command[] {
    return this.#sources.flatMap((source) => [...source()])
  }

  /** Return the commands that can be run now. */
  available(): Command[] {
    return this.all().filter((command) => command.when?.() ?? true)
  }

  run(id: string): void {
    this.available().find((command) => command.id === id)?.run()
  }

  /** Return the shortcut of a command as display text. */
  keys(id: string): string | undefined {
    const command = this.all().find((each) => each.id === id)
    return command && keysText(command)
  }

  /** Run the command of a key press; return whether there is one. */
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

  /** Return the command of a shortcut in a terminal, or undefined. The program gets Ctrl and Alt keys; with Shift, and with ⌘ on a Mac, they are commands. */
  #inTerminal(keys: string): Command | undefined {
    if (MAC && keys.startsWith('Mod+')) return this.#find(keys)
    if (!/^(?:Mod|Alt)\+/.test(keys)) return this.#find(keys)
    if (!/^(?:Mod|Alt)\+Shift\+/.test(keys) || TERMINAL_KEYS.has(keys)) return undefined
    return this.#find(keys) ?? this.#find(keys.replace('Shift+', ''))
  }
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}

function isTerminal(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('.xterm') !== null
}
