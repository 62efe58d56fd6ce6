/** Determine which workers of a session have a tab, and which of them can be started again. */
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'

/** Return the workers that can have a tab: those that run, failed or exited, and stopped ones that can be started again. */
export function tabWorkers(session: Session): Worker[] {
  return session.workers.filter((worker) => worker.state !== 'terminated' || hasFreeRole(session, worker))
}

/** Return whether a worker has ended and could be started again in an active session. */
export function canStartAgain(session: Session, worker: Worker): boolean {
  return worker.state !== 'spawning' && worker.state !== 'active' && hasFreeRole(session, worker)
}

/** Return whether a terminal runs a command of an agent. Its id is a UUID of version 5, made from the request of the agent; other ids are random. */
export function isCommandOfAgent(worker: Worker): boolean {
  return worker.type === 'terminal' && worker.id[14] === '5'
}

/** Return whether a worker can have its role again: no later worker has taken it, even one that ended, and it is not an agent's command that was ended. */
function hasFreeRole({ workers }: Session, worker: Worker): boolean {
  return workers.findLast(({ role }) => role === worker.role)?.id === worker.id && !(isCommandOfAgent(worker) && worker.state === 'terminated')
}
