/** The calls this page makes, by the server's own nouns. */
import { call } from './http.ts'
import type { Session, Worker } from './types.ts'

export const rest = {
  login: (code: string) => call<{ secret: string }>('POST', '/login', { code }),
  sessions: () => call<{ sessions: Session[] }>('GET', '/sessions?limit=100'),
  createSession: (locationPath: string) =>
    call<Session>('POST', '/sessions', locationPath ? { type: 'quick', locationPath } : { type: 'quick' }),
  cancelSession: (id: string) => call<Session>('DELETE', `/sessions/${encodeURIComponent(id)}`),
  createTerminal: (sessionId: string) =>
    call<Worker>('POST', `/sessions/${encodeURIComponent(sessionId)}/workers`, { type: 'terminal' }),
  restartWorker: ({ id, sessionId }: Worker) =>
    call<Worker>('POST', `/sessions/${encodeURIComponent(sessionId)}/workers/${encodeURIComponent(id)}/restart`),
}
