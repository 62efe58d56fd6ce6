/** Load the diff of a workspace, and reload it after events of its session, at most every 1.5 seconds. */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { Diff } from '../api/types/diff.ts'

const PAUSE = 1500 // milliseconds between two requests

export class Changes {
  diff: Diff | undefined = $state.raw()
  problem: string | undefined = $state()
  loading = $state(false)

  readonly #sessionId: string
  readonly #options: { workerId?: string | undefined; patches: boolean }
  #again = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed = false

  constructor(sessionId: string, options: { workerId?: string | undefined; patches: boolean }) {
    this.#sessionId = sessionId
    this.#options = options
  }

  /** Reload the diff now, or after the pause if a request was made recently. */
  refresh(): void {
    if (this.loading || this.#timer) this.#again = true
    else void this.#look()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  async #look(): Promise<void> {
    this.loading = true
    this.#again = false
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
    if (!this.#closed) this.#timer = setTimeout(() => this.#rested(), PAUSE)
  }

  #rested(): void {
    this.#timer = undefined
    if (this.#again) void this.#look()
  }
}
