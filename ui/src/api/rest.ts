/** The calls this page makes, by the server's own nouns. */
import { call } from './http.ts'
import type { Agent, Session, Worker } from './types.ts'

export const rest = {
  login: (code: string) => call<{ secret: string }>('POST', '/login', { code }),
  sessions: () => call<{ sessions: Session[] }>('GET', '/sessions?limit=100'),
  agents: () => call<{ agents: Agent[] }>('GET', '/agents'),
  createSession: (locationPath: string, agentId?: string) =>
    call<Session>('POST', '/sessions', { type: 'quick', ...(locationPath && { locationPath }), ...(agentId && { agentId }) }),
  cancelSession: (id: string) => call<Session>('DELETE', path(id)),
  createTerminal: (sessionId: string) =>
    call<Worker>('POST', `${path(sessionId)}/workers`, { type: 'terminal' }),
  restartWorker: ({ id, sessionId }: Worker) =>
    call<Worker>('POST', `${path(sessionId)}/workers/${encodeURIComponent(id)}/restart`),
}

function path(sessionId: string): string {
  return `/sessions/${encodeURIComponent(sessionId)}`
}
