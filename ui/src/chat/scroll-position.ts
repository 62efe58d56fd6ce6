/** How far the list of a conversation is scrolled up, kept in the storage of the browser so that it survives a reload. */
import { remembered, type Remembered } from '../state/remembered.ts'

/** The first visible entry and its distance in pixels from the top of the list; null at the end of the list. */
export type ScrollPosition = { readonly key: number; readonly top: number } | null

/** Return the stored position for one agent. */
export function scrollPositionFor(sessionId: string, workerId: string): Remembered<ScrollPosition> {
  return remembered<ScrollPosition>(`scroll.${sessionId}.${workerId}`, null)
}
