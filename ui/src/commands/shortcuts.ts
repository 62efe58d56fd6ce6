/** The shortcut of each command: its default, or the one that the user chose. */
import { remembered } from '../state/remembered.ts'
import { belongsToBrowser, formatKeys } from './keys.ts'

/** Chosen shortcuts by command id; `null` means that the user removed the shortcut. */
type Choices = Record<string, string | null>

const NONE: Choices = {}
const chosen = remembered<Choices>('keys', NONE)

interface HasKeys {
  id: string
  keys?: string | undefined
  also?: string | undefined
}

/**
 * Return the shortcut of a command: the one that the user chose, else the default; undefined for a command without one.
 * A stored choice that the browser reserves is ignored: older versions of the page allowed it.
 */
export function keysOf(command: HasKeys): string | undefined {
  const choice = chosen.value[command.id]
  return choice === undefined || (choice && belongsToBrowser(choice)) ? command.keys : (choice ?? undefined)
}

/** Return whether these keys run a command: its shortcut or, unless the user chose that, its second shortcut. */
export function hasKeys(command: HasKeys, keys: string): boolean {
  return keysOf(command) === keys || (command.also === keys && !isChosen(command.id))
}

/** Return all shortcuts of a command as display text, for menus, the palette, the help dialog and the settings. */
export function keysText(command: HasKeys): string | undefined {
  const all = [keysOf(command), isChosen(command.id) ? undefined : command.also]
  return all.filter((keys) => keys !== undefined).map(formatKeys).join(' or ') || undefined
}

/** Return whether the user changed the shortcut of a command. */
export function isChosen(commandId: string): boolean {
  return commandId in chosen.value
}

/** Store the shortcut that the user chose for a command; null removes its shortcut. */
export function chooseKeys(commandId: string, keys: string | null): void {
  chosen.value = { ...chosen.value, [commandId]: keys }
}

/** Restore the default shortcut of one command, or of all commands. */
export function resetKeys(commandId?: string): void {
  const { [commandId ?? '']: _, ...rest } = chosen.value
  chosen.value = commandId === undefined || !Object.keys(rest).length ? NONE : rest
}

/** Return the other commands with the same shortcut; only the first command of a shortcut is run. */
export function conflicts<C extends HasKeys>(commands: readonly C[], keys: string, except: string): C[] {
  return commands.filter((command) => command.id !== except && hasKeys(command, keys))
}
