/** A line of code as pieces to draw: coloured by what they are, marked where they differ. */
import type { CodeToken } from '../markdown/highlight.ts'
import type { Span } from './rows.ts'

export interface Piece {
  readonly text: string
  readonly name: string | undefined
  readonly marked: boolean
}

export function piecesOf(text: string, tokens: readonly CodeToken[] | undefined, spans: readonly Span[]): Piece[] {
  // Tokens of another version of the line would draw another text: then it is plain.
  const fitting = tokens && tokens.map((token) => token.text).join('') === text ? tokens : [{ text, name: undefined }]
  const pieces: Piece[] = []
  let start = 0
  for (const { text: word, name } of fitting) {
    for (const [from, to] of cuts(start, start + word.length, spans))
      pieces.push({ text: text.slice(from, to), name, marked: spans.some(([a, b]) => a <= from && to <= b) })
    start += word.length
  }
  return pieces
}

/** The parts of a range between the edges of spans. */
function cuts(start: number, end: number, spans: readonly Span[]): [number, number][] {
  const edges = spans.flat().filter((edge) => edge > start && edge < end)
  const all = [start, ...edges.sort((a, b) => a - b), end]
  return all.slice(1).flatMap((to, n): [number, number][] => (to > all[n]! ? [[all[n]!, to]] : []))
}
