/** The unsent message to an agent, kept in the storage of the browser so that it survives a reload. */
import { remembered, type Remembered } from '../state/remembered.ts'

export interface Draft {
  readonly text: string
  readonly imageIds: readonly string[]
}

const EMPTY: Draft = { text: '', imageIds: [] }

/** Return the stored draft for one agent. */
export function draftFor(sessionId: string, workerId: string): Remembered<Draft> {
  return remembered(`draft.${sessionId}.${workerId}`, EMPTY)
}

export function isEmpty({ text, imageIds }: Draft): boolean {
  return !text.trim() && !imageIds.length
}
