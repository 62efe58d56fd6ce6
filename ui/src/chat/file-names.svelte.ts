/** The names of the files in the workspace of an agent, loaded when the user begins to mention a file. */
import { ApiError } from '../api/http.ts'
import type { ConversationApi } from '../api/conversation-api.ts'

const MAX_AGE_MS = 10_000

export class WorkspaceFileNames {
  names: readonly string[] = $state.raw([])
  readonly #calls: Pick<ConversationApi, 'fileNames'>
  #loadedAt = -MAX_AGE_MS

  constructor(calls: Pick<ConversationApi, 'fileNames'>) {
    this.#calls = calls
  }

  /** Load the names, unless that was done a moment ago. If it fails, the user can type the path. */
  async load(now = performance.now()): Promise<void> {
    if (now - this.#loadedAt < MAX_AGE_MS) return
    this.#loadedAt = now
    try {
      this.names = (await this.#calls.fileNames()).files
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
    }
  }
}
