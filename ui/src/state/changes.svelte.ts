/**
 * Load the branch and the line counts of each session in the sidebar. Only visible rows are loaded, one after the other,
 * and again only after an agent became idle, because each request costs the server several git commands.
 */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { Session } from '../api/types/sessions.ts'

export interface Changes {
  branch: string | null
  added: number
  removed: number
}

export class ChangesOfSessions {
  #found: Readonly<Record<string, Changes>> = $state.raw({})
  readonly #asked = new Map<string, string>()
  #reading: Promise<void> = Promise.resolve()

  of(session: Session): Changes | undefined {
    return this.#found[session.id]
  }

  /** Reload the summary of a session if its workspace may have changed since the last request. */
  look(session: Session): void {
    const moment = momentOf(session)
    if (moment === undefined || this.#asked.get(session.id) === moment) return
    this.#asked.set(session.id, moment)
    this.#reading = this.#reading.then(() => this.#read(session.id))
  }

  /** Load one summary. Errors are ignored: the row is then shown without counts. */
  async #read(sessionId: string): Promise<void> {
    try {
      const { branch, additions, deletions } = await rest.diff(sessionId, { patches: false })
      this.#found = { ...this.#found, [sessionId]: { branch, added: additions, removed: deletions } }
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 0) this.#asked.delete(sessionId)
    }
  }
}

/** Return a string that changes when the workspace of a session may have changed; undefined if the session has no repository. */
export function momentOf(session: Pick<Session, 'repoId' | 'status' | 'workers'>): string | undefined {
  if (session.repoId === null) return undefined
  const agents = session.workers.filter((worker) => worker.type === 'agent')
  const settled = agents.filter((worker) => worker.activity !== 'active').map((worker) => worker.activitySince)
  return [session.status, ...settled.toSorted()].join(' ')
}
