/** Which keys run which command: the ones a command comes with, or the ones a person chose instead. */
import { remembered } from '../state/remembered.ts'

/** `null` is a choice too: no keys at all. */
type Choices = Record<string, string | null>

const NONE: Choices = {}
const chosen = remembered<Choices>('keys', NONE)

export function keysOf(command: { id: string; keys?: string | undefined }): string | undefined {
  const choice = chosen.value[command.id]
  return choice === undefined ? command.keys : (choice ?? undefined)
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
export function conflicts<C extends { id: string; keys?: string | undefined }>(commands: readonly C[], keys: string, except: string): C[] {
  return commands.filter((command) => command.id !== except && keysOf(command) === keys)
}
