/** Two versions of a text as the lines that differ, with a little of what is round them. */
import { structuredPatch } from 'diff'

export interface Line {
  sign: '+' | '-' | ' ' | '…'
  text: string
  number: number | undefined
}

const SLOWEST = 200 // milliseconds; then it is all old and all new
const CONTEXT = 3

export function linesOf(oldText: string, newText: string): Line[] {
  const patch = structuredPatch('', '', oldText, newText, '', '', { context: CONTEXT, timeout: SLOWEST })
  if (!patch) return [...plain('-', oldText), ...plain('+', newText)]
  return patch.hunks.flatMap((hunk, n) => [...(n ? [{ sign: '…', text: '', number: undefined } as const] : []), ...hunkLines(hunk)])
}

export function countsOf(lines: readonly Line[]): { added: number; removed: number } {
  return { added: lines.filter(({ sign }) => sign === '+').length, removed: lines.filter(({ sign }) => sign === '-').length }
}

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

function plain(sign: '+' | '-', text: string): Line[] {
  return text ? text.replace(/\n$/, '').split('\n').map((line, n) => ({ sign, text: line, number: n + 1 })) : []
}
