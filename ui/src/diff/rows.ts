/** Convert a parsed patch into rows for one or two columns. @pierre/diffs only parses; see docs/decisions. */
import type { FileDiffMetadata, Hunk } from '@pierre/diffs'
import { diffWordsWithSpace } from 'diff'

export type Side = 'old' | 'new'

/** A range of a line that differs from its counterpart. */
export type Span = readonly [start: number, end: number]

/** One line on one side of a diff. */
export interface Cell {
  readonly side: Side
  /** The number of the line in its file. */
  readonly line: number
  /** The index of the line among the lines of this side of the patch. */
  readonly index: number
  readonly text: string
  readonly changed: boolean
  readonly spans: readonly Span[]
}

export type Row =
  | { readonly kind: 'gap'; readonly text: string }
  | { readonly kind: 'lines'; readonly old: Cell | undefined; readonly new: Cell | undefined }

const MAX_COMPARED_CHARACTERS = 500 // the words of longer lines are not compared

/** Return rows for two columns, with corresponding lines beside each other. */
export function splitRows(file: FileDiffMetadata): Row[] {
  return file.hunks.flatMap((hunk, n) => [...gapBefore(hunk, n), ...hunkRows(file, hunk)])
}

/** Return rows for one column: for each change first the removed lines, then the added lines. */
export function unifiedRows(rows: readonly Row[]): Row[] {
  const unified: Row[] = []
  let added: Row[] = []
  const flush = () => {
    unified.push(...added)
    added = []
  }
  for (const row of rows) {
    const changed = row.kind === 'lines' && (row.old?.changed || row.new?.changed)
    if (!changed) flush()
    if (!changed) unified.push(row)
    else {
      if (row.old) unified.push({ ...row, new: undefined })
      if (row.new) added.push({ ...row, old: undefined })
    }
  }
  flush()
  return unified
}

/** Return the row for the unchanged lines that are left out before a hunk. */
function gapBefore(hunk: Hunk, n: number): Row[] {
  const left = hunk.collapsedBefore
  if (!left && !n) return []
  const lines = left === 1 ? '1 unchanged line' : `${left} unchanged lines`
  return [{ kind: 'gap', text: [lines, hunk.hunkContext?.trim()].filter(Boolean).join(' · ') }]
}

/** Return the rows of one hunk. */
function hunkRows(file: FileDiffMetadata, hunk: Hunk): Row[] {
  let [old, next] = [hunk.deletionStart, hunk.additionStart]
  const rows: Row[] = []
  for (const part of hunk.hunkContent) {
    const [before, after] = part.type === 'context' ? [part.lines, part.lines] : [part.deletions, part.additions]
    for (let n = 0; n < Math.max(before, after); n++) {
      const oldCell = n < before ? cell(file.deletionLines, 'old', part.deletionLineIndex + n, old + n, part.type === 'change') : undefined
      const newCell = n < after ? cell(file.additionLines, 'new', part.additionLineIndex + n, next + n, part.type === 'change') : undefined
      rows.push({ kind: 'lines', ...(part.type === 'change' ? withChangedWords(oldCell, newCell) : { old: oldCell, new: newCell }) })
    }
    old += before
    next += after
  }
  return rows
}

function cell(lines: readonly string[], side: Side, index: number, line: number, changed: boolean): Cell {
  return { side, line, index, text: (lines[index] ?? '').replace(/\r?\n$/, ''), changed, spans: [] }
}

/** Return both cells with their changed words marked, unless more than two thirds of the line changed. */
function withChangedWords(oldCell: Cell | undefined, newCell: Cell | undefined): { old: Cell | undefined; new: Cell | undefined } {
  if (!oldCell || !newCell || oldCell.text.length > MAX_COMPARED_CHARACTERS || newCell.text.length > MAX_COMPARED_CHARACTERS) return { old: oldCell, new: newCell }
  const spans: Record<Side, Span[]> = { old: [], new: [] }
  let [old, next, common] = [0, 0, 0]
  for (const { value, added, removed } of diffWordsWithSpace(oldCell.text, newCell.text)) {
    if (added) spans.new.push([next, (next += value.length)])
    else if (removed) spans.old.push([old, (old += value.length)])
    else [old, next, common] = [old + value.length, next + value.length, common + value.trim().length]
  }
  if (common * 3 < Math.max(oldCell.text.trim().length, newCell.text.trim().length)) return { old: oldCell, new: newCell }
  return { old: { ...oldCell, spans: spans.old }, new: { ...newCell, spans: spans.new } }
}
