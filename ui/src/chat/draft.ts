/** What a person is about to say to one agent; it survives reloads and other tabs (R10). */
import { remembered, type Remembered } from '../state/remembered.ts'

export interface Draft {
  readonly text: string
  readonly imageIds: readonly string[]
}

const EMPTY: Draft = { text: '', imageIds: [] }

export function draftFor(sessionId: string, workerId: string): Remembered<Draft> {
  return remembered(`draft.${sessionId}.${workerId}`, EMPTY)
}

export function isEmpty({ text, imageIds }: Draft): boolean {
  return !text.trim() && !imageIds.length
}
