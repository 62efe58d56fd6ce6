/** The clone that this browser has started: its progress, its end, and cancelling it. It survives a reload of the page. */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { Clone } from '../api/types/clones.ts'
import { remembered } from '../state/remembered.ts'

const POLL_MS = 400

export class CloneJob {
  /** The clone while it runs. */
  running: Clone | undefined = $state.raw()
  /** Why the last clone failed. */
  problem: string | undefined = $state()

  readonly #id = remembered('clone', '')
  readonly #ondone: (repoId: string) => Promise<void>
  #timer: ReturnType<typeof setTimeout> | undefined

  /** `ondone` is called with the id of the new repository. */
  constructor(ondone: (repoId: string) => Promise<void>) {
    this.#ondone = ondone
    if (this.#id.value) void this.#poll()
  }

  /** Start a clone of `url` into the directory `into`, and follow its progress. */
  async start(url: string, into: string): Promise<void> {
    this.problem = undefined
    const clone = await rest.clone(url, into)
    this.#id.value = clone.id
    await this.#show(clone)
  }

  async cancel(): Promise<void> {
    if (this.running) await rest.cancelClone(this.running.id)
    await this.#poll()
  }

  /** Stop asking for the progress; the clone continues. */
  close(): void {
    clearTimeout(this.#timer)
  }

  async #poll(): Promise<void> {
    clearTimeout(this.#timer)
    try {
      await this.#show(await rest.cloneProgress(this.#id.value))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.isTransient) return this.#pollLater()
      this.problem = 'The clone was interrupted, and its files were removed. Start it again.' // the server was restarted
      this.#end()
    }
  }

  /** Show a report of the server: go on polling, show the failure, or call `ondone` with the new repository. */
  async #show(clone: Clone): Promise<void> {
    if (clone.state === 'running') {
      this.running = clone
      return this.#pollLater()
    }
    this.#end()
    if (clone.state === 'failed') this.problem = clone.error ?? 'The clone failed.'
    else if (clone.repoId) await this.#ondone(clone.repoId)
  }

  #pollLater(): void {
    this.#timer = setTimeout(() => void this.#poll(), POLL_MS)
  }

  #end(): void {
    this.running = undefined
    this.#id.forget()
  }
}

/** Return the share that is done according to a progress line of git, or undefined: "Receiving objects: 45% (9/20)" gives 0.45. */
export function shareDone(progress: string): number | undefined {
  const percent = /(\d+)%/.exec(progress)?.[1]
  return percent === undefined ? undefined : Number(percent) / 100
}
