/** Load the current content of a Markdown worker's file from the events of the session. */
import type { DocumentChanged } from '../api/facts.ts'
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'

const NEWEST = 20 // events; several documents of a session share the limit

export class Document {
  said: DocumentChanged | undefined = $state.raw()
  problem: string | undefined = $state()

  readonly #sessionId: string
  readonly #workerId: string
  #reading = false
  #again = false

  constructor(sessionId: string, workerId: string) {
    this.#sessionId = sessionId
    this.#workerId = workerId
  }

  /** Reload the content after an event of the session. */
  async refresh(): Promise<void> {
    this.#again = true
    if (this.#reading) return
    this.#reading = true
    while (this.#again) {
      this.#again = false
      await this.#read()
    }
    this.#reading = false
  }

  async #read(): Promise<void> {
    try {
      const { events } = await rest.events(this.#sessionId, { types: ['document_changed'], newest: true, limit: NEWEST })
      const newest = events.findLast((event) => event.workerId === this.#workerId)
      if (newest) this.said = newest.data as unknown as DocumentChanged
      this.problem = undefined
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.problem = error.message
    }
  }
}
