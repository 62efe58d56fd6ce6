/** Make the lines of the help dialog: one for each command with a shortcut, and a single line for sessions with shortcuts from 1 to 9. */
import type { Command } from './commands.svelte.ts'
import { shownKeys } from './shortcuts.ts'

export interface Line {
  id: string
  title: string
  keys: string
}

/** Return the lines of the given commands. */
export function linesOf(commands: readonly Pick<Command, 'id' | 'title' | 'keys' | 'also'>[]): Line[] {
  const lines = commands.flatMap((command) => {
    const keys = shownKeys(command)
    return keys ? [{ id: command.id, title: command.title, keys }] : []
  })
  const [first, ...others] = lines.filter(({ id }) => id.startsWith('go.session.'))
  if (!first || !countFrom(first, others)) return lines
  const together = { ...first, title: 'Sessions 1 to 9 of the list', keys: `${first.keys}–9` }
  return lines.flatMap((line) => (line === first ? [together] : others.includes(line) ? [] : [line]))
}

function countFrom(first: Line, others: readonly Line[]): boolean {
  return first.keys.endsWith('1') && others.length === 8 && others.every(({ keys }, n) => keys === `${first.keys.slice(0, -1)}${n + 2}`)
}
