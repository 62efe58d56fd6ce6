/**
 * Load the branch and the line counts of each session in the sidebar. Only visible rows are loaded, one after the other,
 * and again only after an agent became idle, because each request costs the server several git commands.
 */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { Session } from '../api/types/sessions.ts'

/** The branch of a session and its added and removed lines. */
export interface BranchSummary {
  branch: string | null
  added: number
  removed: number
}

/** The summaries of all visible sessions. */
export class BranchSummaries {
  #summaries: Readonly<Record<string, BranchSummary>> = $state.raw({})
  readonly #requestedVersions = new Map<string, string>()
  #loading: Promise<void> = Promise.resolve()

  of(session: Session): BranchSummary | undefined {
    return this.#summaries[session.id]
  }

  /** Reload the summary of a session if its workspace may have changed since the last request. */
  refresh(session: Session): void {
    const version = workspaceVersion(session)
    if (version === undefined || this.#requestedVersions.get(session.id) === version) return
    this.#requestedVersions.set(session.id, version)
    this.#loading = this.#loading.then(() => this.#load(session.id))
  }

  /** Load one summary. Errors are ignored: the row is then shown without counts. */
  async #load(sessionId: string): Promise<void> {
    try {
      const { branch, additions, deletions } = await rest.diff(sessionId, { patches: false })
      this.#summaries = { ...this.#summaries, [sessionId]: { branch, added: additions, removed: deletions } }
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 0) this.#requestedVersions.delete(sessionId)
    }
  }
}

/** Return a string that changes when the workspace of a session may have changed; undefined if the session has no repository. */
export function workspaceVersion(session: Pick<Session, 'repoId' | 'status' | 'workers'>): string | undefined {
  if (session.repoId === null) return undefined
  const agents = session.workers.filter((worker) => worker.type === 'agent')
  const idleSince = agents.filter((worker) => worker.activity !== 'active').map((worker) => worker.activitySince)
  return [session.status, ...idleSince.toSorted()].join(' ')
}
