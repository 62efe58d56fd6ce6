/** Drafts of comments on lines of a diff; they survive a reload and are sent to an agent as one message. */
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

/** All drafts of a session. */
export interface Drafts {
  /** The id of the message with these comments, so that sending it again after a lost answer has no effect. */
  readonly promptId: string
  readonly comments: readonly DraftComment[]
}

const NONE: Drafts = { promptId: '', comments: [] }

/** Return the stored drafts of a session. */
export function draftsFor(sessionId: string): Remembered<Drafts> {
  return remembered(`diff.comments.${sessionId}`, NONE)
}

/** Add an empty comment on a line, unless the line has one. */
export function addComment(drafts: Drafts, path: string, side: Side, line: number): Drafts {
  if (findComment(drafts, path, side, line)) return drafts
  return { promptId: randomId(), comments: [...drafts.comments, { id: randomId(), path, side, line, text: '' }] }
}

/** Change the text of a comment. The message gets a new id, because its content is different. */
export function editComment(drafts: Drafts, id: string, text: string): Drafts {
  return { promptId: randomId(), comments: drafts.comments.map((each) => (each.id === id ? { ...each, text } : each)) }
}

export function removeComment(drafts: Drafts, id: string): Drafts {
  const comments = drafts.comments.filter((each) => each.id !== id)
  return comments.length ? { promptId: randomId(), comments } : NONE
}

export function findComment(drafts: Drafts, path: string, side: Side, line: number): DraftComment | undefined {
  return drafts.comments.find((each) => each.path === path && each.side === side && each.line === line)
}

/** Return the non-empty comments in the format of the server. */
export function sendableComments({ comments }: Drafts): Comment[] {
  return comments.flatMap(({ path, side, line, text }) => (text.trim() ? [{ path, side, line, text: text.trim() }] : []))
}
