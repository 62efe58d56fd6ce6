/** The calls this page makes, by the server's own nouns. */
import { call } from './http.ts'
import type { Agent, Queue, Session, Worker } from './types.ts'

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
  prompt: (sessionId: string, prompt: { promptId: string; text: string; workerId: string }) =>
    call<{ seq: number; queued: boolean }>('POST', `${path(sessionId)}/prompt`, prompt),
  cancelTurn: (sessionId: string, workerId: string) => call<void>('POST', `${path(sessionId)}/cancel`, { workerId }),
  answerPermission: (sessionId: string, id: string, optionId: string) =>
    call<void>('POST', `${path(sessionId)}/permissions/${encodeURIComponent(id)}`, { optionId }),
  answerQuestion: (sessionId: string, id: string, action: string, content?: Record<string, unknown>) =>
    call<void>('POST', `${path(sessionId)}/questions/${encodeURIComponent(id)}`, { action, content }),
  queue: (sessionId: string) => call<Queue>('GET', `${path(sessionId)}/queue`),
  resumeQueue: (sessionId: string) => call<void>('POST', `${path(sessionId)}/queue/resume`),
}

function path(sessionId: string): string {
  return `/sessions/${encodeURIComponent(sessionId)}`
}
