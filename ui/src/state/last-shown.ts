/** Store when this browser last showed each session. This decides about turns typed into terminals, which have no inbox item. */
import type { Session } from '../api/types/sessions.ts'
import { remembered } from './remembered.ts'

interface ShownTimes {
  /** The time of the first use of this browser; earlier changes count as seen. */
  since: string
  at: Record<string, string>
}

const stored = remembered<ShownTimes | undefined>('seen', undefined)

/** Return the time up to which this browser has shown a session. */
export function lastShownAt(sessionId: string): string {
  return stored.value?.at[sessionId] ?? stored.value?.since ?? ''
}

/** Store that this browser has shown the newest change of a session. */
export function markShown(session: Session): void {
  const newest = lastChangeOf(session)
  if (newest <= lastShownAt(session.id) && stored.value) return
  stored.value = { since: stored.value?.since ?? newest, at: { ...stored.value?.at, [session.id]: newest } }
}

/** Store the time of the first use of this browser, unless it is stored. */
export function startTracking(now = new Date().toISOString()): void {
  stored.value ??= { since: now, at: {} }
}

/** Delete the times of sessions that no longer exist. */
export function forgetRemoved(sessions: readonly Session[]): void {
  if (!stored.value) return
  const ids = new Set(sessions.map((session) => session.id))
  const at = Object.entries(stored.value.at).filter(([id]) => ids.has(id))
  if (at.length < Object.keys(stored.value.at).length) stored.value = { ...stored.value, at: Object.fromEntries(at) }
}

function lastChangeOf(session: Session): string {
  return session.workers.reduce((newest, worker) => (worker.activitySince > newest ? worker.activitySince : newest), session.updatedAt)
}
