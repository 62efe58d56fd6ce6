/** Fold the messages of the dashboard socket into the list of sessions: first the whole list, then each change. */
import type { InboxItem } from '../api/types/inbox.ts'
import type { Session } from '../api/types/sessions.ts'

export type DashboardMessage =
  | { type: 'sessions'; sessions: Session[] }
  | { type: 'session'; session: Session }
  | { type: 'removed'; sessionId: string }
  | { type: 'inbox'; items: InboxItem[] }
  | { type: 'heartbeat' }

/** Return the sessions after one more message, newest first. */
export function fold(sessions: readonly Session[], message: DashboardMessage): readonly Session[] {
  switch (message.type) {
    case 'sessions':
      return newestFirst(message.sessions)
    case 'session':
      return newestFirst([...withoutSession(sessions, message.session.id), message.session])
    case 'removed':
      return withoutSession(sessions, message.sessionId)
    default:
      return sessions // a message about something else
  }
}

function withoutSession(sessions: readonly Session[], id: string): Session[] {
  return sessions.filter((session) => session.id !== id)
}

function newestFirst(sessions: readonly Session[]): Session[] {
  return sessions.toSorted((a, b) => b.createdAt.localeCompare(a.createdAt))
}
