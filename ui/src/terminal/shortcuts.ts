/** Keys that are the page's in a terminal: ⌘ on a Mac, Ctrl with Shift elsewhere; Ctrl alone is the program's. */
import { MAC } from '../commands/keys.ts'

export function meaningOf(event: KeyboardEvent): 'find' | 'copy' | undefined {
  const ours = MAC ? event.metaKey && !event.ctrlKey : event.ctrlKey && event.shiftKey
  if (!ours || event.altKey) return undefined
  const key = event.key.toLowerCase()
  return key === 'f' ? 'find' : key === 'c' ? 'copy' : undefined
}
