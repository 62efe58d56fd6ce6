/**
 * The branch of each session and how many lines differ on it. Asked for by the rows that are on the screen, one after the
 * other, and again only when an agent of theirs has come to rest: a diff costs the server a few calls of git.
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

  /** Brings it up to date when there is something to bring. */
  look(session: Session): void {
    const moment = momentOf(session)
    if (moment === undefined || this.#asked.get(session.id) === moment) return
    this.#asked.set(session.id, moment)
    this.#reading = this.#reading.then(() => this.#read(session.id))
  }

  /** Without a word when it fails: a row without counts is true, and the connection has a light of its own. */
  async #read(sessionId: string): Promise<void> {
    try {
      const { branch, additions, deletions } = await rest.diff(sessionId, { patches: false })
      this.#found = { ...this.#found, [sessionId]: { branch, added: additions, removed: deletions } }
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 0) this.#asked.delete(sessionId)
    }
  }
}

/** Names the state of a workspace as far as the list can know it; undefined where there is no repository to ask, or not yet. */
export function momentOf(session: Pick<Session, 'repoId' | 'status' | 'workers'>): string | undefined {
  if (session.repoId === null) return undefined
  const agents = session.workers.filter((worker) => worker.type === 'agent')
  const settled = agents.filter((worker) => worker.activity !== 'active').map((worker) => worker.activitySince)
  return [session.status, ...settled.toSorted()].join(' ')
}
