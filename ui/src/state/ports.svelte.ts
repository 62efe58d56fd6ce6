/** What the programs of a session listen on, asked again every few seconds as long as somebody looks. */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { Port } from '../api/types/ports.ts'

export const PAUSE = 3000

export class Ports {
  list: readonly Port[] = $state.raw([])
  problem: string | undefined = $state()
  loaded = $state(false)

  readonly #sessionId: string
  #timer: ReturnType<typeof setTimeout> | undefined
  #asking = false
  #closed = false

  constructor(sessionId: string) {
    this.#sessionId = sessionId
  }

  /** Asks now and goes on asking; a page that nobody sees waits until it is called again. */
  look(): void {
    clearTimeout(this.#timer)
    if (!this.#asking && !this.#closed && document.visibilityState === 'visible') void this.#ask()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  async #ask(): Promise<void> {
    this.#asking = true
    try {
      this.#learn((await rest.ports(this.#sessionId)).ports)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.status) this.problem = error.message // out of reach has a light of its own, and is asked again
    } finally {
      this.#asking = false
    }
    if (!this.#closed) this.#timer = setTimeout(() => this.look(), PAUSE)
  }

  #learn(ports: readonly Port[]): void {
    if (JSON.stringify(ports) !== JSON.stringify(this.list)) this.list = ports
    this.problem = undefined
    this.loaded = true
  }
}
