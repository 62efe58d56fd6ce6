/** Split a line of code into pieces with one colour each, marked where the line differs from its counterpart. */
import type { CodeToken } from '../markdown/highlight.ts'
import type { Span } from './rows.ts'

export interface Piece {
  readonly text: string
  readonly name: string | undefined
  readonly marked: boolean
}

/** Return the pieces of a line from its syntax tokens and changed spans. */
export function piecesOf(text: string, tokens: readonly CodeToken[] | undefined, spans: readonly Span[]): Piece[] {
  // Tokens may belong to an older version of the line; then the line is drawn without colours.
  const validTokens = tokens && tokens.map((token) => token.text).join('') === text ? tokens : [{ text, name: undefined }]
  const pieces: Piece[] = []
  let start = 0
  for (const { text: tokenText, name } of validTokens) {
    for (const [from, to] of splitAtEdges(start, start + tokenText.length, spans))
      pieces.push({ text: text.slice(from, to), name, marked: spans.some(([a, b]) => a <= from && to <= b) })
    start += tokenText.length
  }
  return pieces
}

/** Split a range at the edges of the spans. */
function splitAtEdges(start: number, end: number, spans: readonly Span[]): [number, number][] {
  const edges = spans.flat().filter((edge) => edge > start && edge < end)
  const all = [start, ...edges.sort((a, b) => a - b), end]
  return all.slice(1).flatMap((to, n): [number, number][] => (to > all[n]! ? [[all[n]!, to]] : []))
}
