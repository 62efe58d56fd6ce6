/** Load the current content of a Markdown worker's file from the events of the session. */
import type { DocumentChanged } from '../api/facts.ts'
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'

const MAX_EVENTS = 20 // several documents of a session share the limit

/** The content of one Markdown file. */
export class WatchedDocument {
  content: DocumentChanged | undefined = $state.raw()
  problem: string | undefined = $state()

  readonly #sessionId: string
  readonly #workerId: string
  #loading = false
  #reloadAgain = false

  constructor(sessionId: string, workerId: string) {
    this.#sessionId = sessionId
    this.#workerId = workerId
  }

  /** Reload the content after an event of the session. */
  async refresh(): Promise<void> {
    this.#reloadAgain = true
    if (this.#loading) return
    this.#loading = true
    while (this.#reloadAgain) {
      this.#reloadAgain = false
      await this.#load()
    }
    this.#loading = false
  }

  async #load(): Promise<void> {
    try {
      const { events } = await rest.events(this.#sessionId, { types: ['document_changed'], newest: true, limit: MAX_EVENTS })
      const newest = events.findLast((event) => event.workerId === this.#workerId)
      if (newest) this.content = newest.data as unknown as DocumentChanged
      this.problem = undefined
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.problem = error.message
    }
  }
}
