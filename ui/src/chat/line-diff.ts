/** Compare two versions of a text line by line, with a few unchanged lines of context. */
import { structuredPatch } from 'diff'

export interface Line {
  sign: '+' | '-' | ' ' | '…'
  text: string
  number: number | undefined
}

const DIFF_TIMEOUT_MS = 200 // milliseconds; after that the whole old and the whole new text are shown
const CONTEXT_LINES = 3

/** Return the changed lines with context; `…` separates hunks. */
export function linesOf(oldText: string, newText: string): Line[] {
  const patch = structuredPatch('', '', oldText, newText, '', '', { context: CONTEXT_LINES, timeout: DIFF_TIMEOUT_MS })
  if (!patch) return [...allLines('-', oldText), ...allLines('+', newText)]
  return patch.hunks.flatMap((hunk, n) => [...(n ? [{ sign: '…', text: '', number: undefined } as const] : []), ...hunkLines(hunk)])
}

export function countsOf(lines: readonly Line[]): { added: number; removed: number } {
  return { added: lines.filter(({ sign }) => sign === '+').length, removed: lines.filter(({ sign }) => sign === '-').length }
}

/** Return the lines of one hunk with their line numbers. */
function hunkLines({ lines, newStart, oldStart }: { lines: string[]; newStart: number; oldStart: number }): Line[] {
  let [older, newer] = [oldStart, newStart]
  return lines
    .filter((line) => !line.startsWith('\\'))
    .map((line) => {
      const sign = line[0] as '+' | '-' | ' '
      const number = sign === '-' ? older : newer
      if (sign !== '+') older++
      if (sign !== '-') newer++
      return { sign, text: line.slice(1), number }
    })
}

/** Return all lines of a text as added or removed. */
function allLines(sign: '+' | '-', text: string): Line[] {
  return text ? text.replace(/\n$/, '').split('\n').map((line, n) => ({ sign, text: line, number: n + 1 })) : []
}
