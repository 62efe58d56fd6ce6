/** Load the newest plan of each agent of a session from its events. */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { SessionEvent } from '../api/types/events.ts'
import { stepsOf, type Step } from './entries.ts'

/** The plans of one session. */
export class Plans {
  byWorker: Readonly<Record<string, Step[]>> = $state.raw({})
  loaded = $state(false)
  #after = 0
  #reading = false

  /** Load the plan events after the last call, up to `head`. */
  async read(sessionId: string, head: number): Promise<void> {
    if (this.#reading || head <= this.#after) return
    this.#reading = true
    try {
      const { events } = await rest.events(sessionId, { types: ['plan'], after: this.#after, limit: 10_000 })
      this.#after = Math.max(head, events.at(-1)?.seq ?? 0)
      if (events.length) this.byWorker = { ...this.byWorker, ...newest(events) }
      this.loaded = true
    } catch (error) {
      if (!(error instanceof ApiError)) throw error // the next change of the session tries again
    } finally {
      this.#reading = false
    }
  }
}

/** Return the newest plan of each worker. */
function newest(events: readonly SessionEvent[]): Record<string, Step[]> {
  return Object.fromEntries(events.map((event) => [event.workerId ?? '', stepsOf(event.data.entries)]))
}
