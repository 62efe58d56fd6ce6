/** Which keys run which command: the ones a command comes with, or the ones a person chose instead. */
import { remembered } from '../state/remembered.ts'
import { belongsToBrowser, formatKeys } from './keys.ts'

/** `null` is a choice too: no keys at all. */
type Choices = Record<string, string | null>

const NONE: Choices = {}
const chosen = remembered<Choices>('keys', NONE)

interface Bound {
  id: string
  keys?: string | undefined
  also?: string | undefined
}

/** The keys of a command. A choice the browser keeps to itself, made by an older version of this page, does not count. */
export function keysOf(command: Bound): string | undefined {
  const choice = chosen.value[command.id]
  return choice === undefined || (choice && belongsToBrowser(choice)) ? command.keys : (choice ?? undefined)
}

export function hasKeys(command: Bound, keys: string): boolean {
  return keysOf(command) === keys || (command.also === keys && !isChosen(command.id))
}

/** All keys of a command as a person reads them: the same in menus, the palette, the help and the settings. */
export function shownKeys(command: Bound): string | undefined {
  const all = [keysOf(command), isChosen(command.id) ? undefined : command.also]
  return all.filter((keys) => keys !== undefined).map(formatKeys).join(' or ') || undefined
}

export function isChosen(commandId: string): boolean {
  return commandId in chosen.value
}

export function chooseKeys(commandId: string, keys: string | null): void {
  chosen.value = { ...chosen.value, [commandId]: keys }
}

export function resetKeys(commandId?: string): void {
  const { [commandId ?? '']: _, ...rest } = chosen.value
  chosen.value = commandId === undefined || !Object.keys(rest).length ? NONE : rest
}

/** Commands that would answer to the same keys: only the first of them does. */
export function conflicts<C extends Bound>(commands: readonly C[], keys: string, except: string): C[] {
  return commands.filter((command) => command.id !== except && hasKeys(command, keys))
}
