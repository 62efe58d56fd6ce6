/** Shortcuts of the page in a terminal: with ⌘ on a Mac, with Ctrl+Shift elsewhere, because the program gets keys with Ctrl alone. */
import { MAC } from '../commands/keys.ts'

/** Return the action of a key press that is not for the program. */
export function terminalAction(event: KeyboardEvent): 'find' | 'copy' | undefined {
  const ours = MAC ? event.metaKey && !event.ctrlKey : event.ctrlKey && event.shiftKey
  if (!ours || event.altKey) return undefined
  const key = event.key.toLowerCase()
  return key === 'f' ? 'find' : key === 'c' ? 'copy' : undefined
}
