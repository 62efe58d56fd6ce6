/** Which sessions this browser has shown, and when: for what is typed into terminals, which the inbox does not hear of. */
import type { Session } from '../api/types/sessions.ts'
import { remembered } from './remembered.ts'

interface Seen {
  /** Before anybody looked for the first time nothing is news. */
  since: string
  at: Record<string, string>
}

const kept = remembered<Seen | undefined>('seen', undefined)

export function seenAt(sessionId: string): string {
  return kept.value?.at[sessionId] ?? kept.value?.since ?? ''
}

/** The newest thing of this session is on the screen now. */
export function see(session: Session): void {
  const newest = newestOf(session)
  if (newest <= seenAt(session.id) && kept.value) return
  kept.value = { since: kept.value?.since ?? newest, at: { ...kept.value?.at, [session.id]: newest } }
}

/** The first look of this browser: what lies before it is no news. */
export function startSeeing(now = new Date().toISOString()): void {
  kept.value ??= { since: now, at: {} }
}

/** What is gone need not be remembered. */
export function forgetOthers(sessions: readonly Session[]): void {
  if (!kept.value) return
  const ids = new Set(sessions.map((session) => session.id))
  const at = Object.entries(kept.value.at).filter(([id]) => ids.has(id))
  if (at.length < Object.keys(kept.value.at).length) kept.value = { ...kept.value, at: Object.fromEntries(at) }
}

function newestOf(session: Session): string {
  return session.workers.reduce((newest, worker) => (worker.activitySince > newest ? worker.activitySince : newest), session.updatedAt)
}
