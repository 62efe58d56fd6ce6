/** Load the diff of a workspace, and reload it after events of its session, at most every 1.5 seconds. */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { Diff } from '../api/types/diff.ts'

const PAUSE_MS = 1500 // between two requests

/** The current diff of one workspace. */
export class WorkspaceDiff {
  diff: Diff | undefined = $state.raw()
  problem: string | undefined = $state()
  loading = $state(false)

  readonly #sessionId: string
  readonly #options: { workerId?: string | undefined; patches: boolean }
  #reloadAfterPause = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed = false

  constructor(sessionId: string, options: { workerId?: string | undefined; patches: boolean }) {
    this.#sessionId = sessionId
    this.#options = options
  }

  /** Reload the diff now, or after the pause if a request was made recently. */
  refresh(): void {
    if (this.loading || this.#timer) this.#reloadAfterPause = true
    else void this.#load()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  async #load(): Promise<void> {
    this.loading = true
    this.#reloadAfterPause = false
    try {
      const diff = await rest.diff(this.#sessionId, this.#options)
      if (JSON.stringify(diff) !== JSON.stringify(this.diff)) this.diff = diff
      this.problem = undefined
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.problem = error.message
    } finally {
      this.loading = false
    }
    if (!this.#closed) this.#timer = setTimeout(() => this.#pauseEnded(), PAUSE_MS)
  }

  #pauseEnded(): void {
    this.#timer = undefined
    if (this.#reloadAfterPause) void this.#load()
  }
}
