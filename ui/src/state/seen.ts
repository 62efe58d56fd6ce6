/** Remember when this browser last showed each session. This decides about turns typed into terminals, which have no inbox item. */
import type { Session } from '../api/types/sessions.ts'
import { remembered } from './remembered.ts'

interface Seen {
  /** The time of the first use of this browser; earlier changes count as seen. */
  since: string
  at: Record<string, string>
}

const kept = remembered<Seen | undefined>('seen', undefined)

/** Return the time up to which this browser has shown a session. */
export function seenAt(sessionId: string): string {
  return kept.value?.at[sessionId] ?? kept.value?.since ?? ''
}

/** Mark the newest change of a session as seen. */
export function see(session: Session): void {
  const newest = newestOf(session)
  if (newest <= seenAt(session.id) && kept.value) return
  kept.value = { since: kept.value?.since ?? newest, at: { ...kept.value?.at, [session.id]: newest } }
}

/** Store the time of the first use of this browser, unless it is stored. */
export function startSeeing(now = new Date().toISOString()): void {
  kept.value ??= { since: now, at: {} }
}

/** Delete the times of sessions that no longer exist. */
export function forgetOthers(sessions: readonly Session[]): void {
  if (!kept.value) return
  const ids = new Set(sessions.map((session) => session.id))
  const at = Object.entries(kept.value.at).filter(([id]) => ids.has(id))
  if (at.length < Object.keys(kept.value.at).length) kept.value = { ...kept.value, at: Object.fromEntries(at) }
}

function newestOf(session: Session): string {
  return session.workers.reduce((newest, worker) => (worker.activitySince > newest ? worker.activitySince : newest), session.updatedAt)
}
