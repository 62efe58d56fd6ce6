/** Load the ports of a session, again every 3 seconds while the page is visible. */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { Port } from '../api/types/ports.ts'

export const POLL_MS = 3000

/** The ports of one session. */
export class SessionPorts {
  list: readonly Port[] = $state.raw([])
  problem: string | undefined = $state()
  loaded = $state(false)

  readonly #sessionId: string
  #timer: ReturnType<typeof setTimeout> | undefined
  #loading = false
  #closed = false

  constructor(sessionId: string) {
    this.#sessionId = sessionId
  }

  /** Load the ports now and then periodically. In a hidden page, wait for the next call. */
  refresh(): void {
    clearTimeout(this.#timer)
    if (!this.#loading && !this.#closed && document.visibilityState === 'visible') void this.#load()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  async #load(): Promise<void> {
    this.#loading = true
    try {
      this.#update((await rest.ports(this.#sessionId)).ports)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.status) this.problem = error.message // a missing answer is shown by the connection indicator, and the request is repeated
    } finally {
      this.#loading = false
    }
    if (!this.#closed) this.#timer = setTimeout(() => this.refresh(), POLL_MS)
  }

  /** Show the ports; an equal list is not replaced, so that nothing is drawn again. */
  #update(ports: readonly Port[]): void {
    if (JSON.stringify(ports) !== JSON.stringify(this.list)) this.list = ports
    this.problem = undefined
    this.loaded = true
  }
}
