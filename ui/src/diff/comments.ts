/** Remarks on lines that are not sent yet: they survive reloads (R10) and go to the agent as one message. */
import { randomId } from '../api/random.ts'
import type { Comment } from '../api/types/diff.ts'
import { remembered, type Remembered } from '../state/remembered.ts'
import type { Side } from './rows.ts'

export interface DraftComment {
  readonly id: string
  readonly path: string
  readonly side: Side
  readonly line: number
  readonly text: string
}

export interface Drafts {
  /** The message they will be: sent twice by a lost answer, it is taken once. */
  readonly promptId: string
  readonly comments: readonly DraftComment[]
}

const NONE: Drafts = { promptId: '', comments: [] }

export function draftsFor(sessionId: string): Remembered<Drafts> {
  return remembered(`diff.comments.${sessionId}`, NONE)
}

export function begin(drafts: Drafts, path: string, side: Side, line: number): Drafts {
  if (find(drafts, path, side, line)) return drafts
  return { promptId: randomId(), comments: [...drafts.comments, { id: randomId(), path, side, line, text: '' }] }
}

/** Another text is another message. */
export function write(drafts: Drafts, id: string, text: string): Drafts {
  return { promptId: randomId(), comments: drafts.comments.map((each) => (each.id === id ? { ...each, text } : each)) }
}

export function drop(drafts: Drafts, id: string): Drafts {
  const comments = drafts.comments.filter((each) => each.id !== id)
  return comments.length ? { promptId: randomId(), comments } : NONE
}

export function find(drafts: Drafts, path: string, side: Side, line: number): DraftComment | undefined {
  return drafts.comments.find((each) => each.path === path && each.side === side && each.line === line)
}

/** Those that say something, as the server takes them. */
export function ready({ comments }: Drafts): Comment[] {
  return comments.flatMap(({ path, side, line, text }) => (text.trim() ? [{ path, side, line, text: text.trim() }] : []))
}
