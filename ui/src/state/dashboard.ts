/** The list of sessions as the dashboard socket tells it: all of them once, then every change. */
import type { InboxItem } from '../api/types/inbox.ts'
import type { Session } from '../api/types/sessions.ts'

export type DashboardMessage =
  | { type: 'sessions'; sessions: Session[] }
  | { type: 'session'; session: Session }
  | { type: 'removed'; sessionId: string }
  | { type: 'inbox'; items: InboxItem[] }
  | { type: 'heartbeat' }

export function fold(sessions: readonly Session[], message: DashboardMessage): readonly Session[] {
  switch (message.type) {
    case 'sessions':
      return newestFirst(message.sessions)
    case 'session':
      return newestFirst([...without(sessions, message.session.id), message.session])
    case 'removed':
      return without(sessions, message.sessionId)
    default:
      return sessions // news of something else
  }
}

function without(sessions: readonly Session[], id: string): Session[] {
  return sessions.filter((session) => session.id !== id)
}

function newestFirst(sessions: readonly Session[]): Session[] {
  return sessions.toSorted((a, b) => b.createdAt.localeCompare(a.createdAt))
}
