/** Make the lines of the help dialog: one for each command with a shortcut, and a single line for sessions with shortcuts from 1 to 9. */
import type { Command } from './commands.svelte.ts'
import { keysText } from './shortcuts.ts'

export interface HelpLine {
  id: string
  title: string
  keys: string
}

/** Return a line for each command with a shortcut; those of sessions are one line if their keys count to 9. */
export function helpLines(commands: readonly Pick<Command, 'id' | 'title' | 'keys' | 'also'>[]): HelpLine[] {
  const lines = commands.flatMap((command) => {
    const keys = keysText(command)
    return keys ? [{ id: command.id, title: command.title, keys }] : []
  })
  const [first, ...others] = lines.filter(({ id }) => id.startsWith('go.session.'))
  if (!first || !countsToNine(first, others)) return lines
  const combined = { ...first, title: 'Sessions 1 to 9 of the list', keys: `${first.keys}–9` }
  return lines.flatMap((line) => (line === first ? [combined] : others.includes(line) ? [] : [line]))
}

/** Return whether the lines have the same modifiers and the digits 1 to 9. */
function countsToNine(first: HelpLine, others: readonly HelpLine[]): boolean {
  return first.keys.endsWith('1') && others.length === 8 && others.every(({ keys }, n) => keys === `${first.keys.slice(0, -1)}${n + 2}`)
}
