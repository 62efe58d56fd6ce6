/** Mentions of files in a message: find the one at the caret, complete it, and rank the files that match it. */
import { fuzzyMatch } from '../commands/fuzzy.ts'
import { baseName } from '../state/attention.ts'

/** A mention that the user is typing: its position in the text, and what follows the at sign. */
export interface Mention {
  start: number
  query: string
}

const MAX_MATCHES = 50
// As in src/bullpen/domain/mentions.py: an at sign inside a word, as in an e-mail address, mentions no file.
const MENTION = /(?:^|[\s([{,;])@(?:"([^"\n]*)|([^\s"]*))$/

/** Return the mention that ends at the caret, or undefined. */
export function mentionAt(text: string, caret: number): Mention | undefined {
  const found = MENTION.exec(text.slice(0, caret))
  const query = found?.[1] ?? found?.[2]
  if (query === undefined) return undefined
  return { start: text.lastIndexOf('@', caret - query.length - 1), query }
}

/** Return the files that match a query, the best first: matches in the name of a file before those in its directory. */
export function matchingFiles(query: string, names: readonly string[]): string[] {
  const scored = names.flatMap((name) => {
    const inName = fuzzyMatch(query, baseName(name))
    const score = inName ? inName.score + 20 : fuzzyMatch(query, name)?.score
    return score === undefined ? [] : [{ name, score: score - name.length / 100 }]
  })
  return scored.toSorted((a, b) => b.score - a.score || a.name.localeCompare(b.name)).slice(0, MAX_MATCHES).map(({ name }) => name)
}

/** Replace a mention by a file; return the text, and the caret behind the mention. */
export function completeMention(text: string, caret: number, { start }: Mention, name: string): { text: string; caret: number } {
  const mention = /[\s"]/.test(name) ? `@"${name}" ` : `@${name} `
  const rest = text.slice(caret).replace(/^"? ?/, '')
  return { text: text.slice(0, start) + mention + rest, caret: start + mention.length }
}
