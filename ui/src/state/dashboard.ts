/** The list of sessions as the dashboard socket tells it: all of them once, then every change. */
import type { Activity, Session } from '../api/types.ts'

export type DashboardMessage =
  | { type: 'sessions'; sessions: Session[] }
  | { type: 'session'; session: Session }
  | { type: 'removed'; sessionId: string }
  | { type: 'activity'; sessionId: string; workerId: string; activity: Activity }
  | { type: 'inbox' }

export function fold(sessions: readonly Session[], message: DashboardMessage): readonly Session[] {
  switch (message.type) {
    case 'sessions':
      return newestFirst(message.sessions)
    case 'session':
      return newestFirst([...without(sessions, message.session.id), message.session])
    case 'removed':
      return without(sessions, message.sessionId)
    case 'activity':
      return sessions.map((session) => (session.id === message.sessionId ? withActivity(session, message) : session))
    default:
      return sessions
  }
}

function without(sessions: readonly Session[], id: string): Session[] {
  return sessions.filter((session) => session.id !== id)
}

function withActivity(session: Session, { workerId, activity }: { workerId: string; activity: Activity }): Session {
  const workers = session.workers.map((worker) => (worker.id === workerId ? { ...worker, activity } : worker))
  return { ...session, workers }
}

function newestFirst(sessions: readonly Session[]): Session[] {
  return sessions.toSorted((a, b) => b.createdAt.localeCompare(a.createdAt))
}
