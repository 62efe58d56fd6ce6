/**
 * What a person says to an agent, on its way: kept until the stream shows it, sent in the order it was written, and again
 * under its id after a lost connection or a reload, or when nobody answered.
 */
import { backoff } from '../api/backoff.ts'
import { ApiError } from '../api/http.ts'
import { randomId } from '../api/random.ts'
import type { Talking } from '../api/talking.ts'
import type { SessionEvent } from '../api/types/events.ts'
import { UnsentPrompts, type Unsent } from './unsent.ts'

export class Prompts {
  /** Those the stream has not shown yet. */
  unsent: readonly Unsent[] = $state.raw([])
  /** Why the last try got no further; undefined if it did. It is tried again by itself. */
  obstacle: string | undefined = $state()

  readonly #calls: Pick<Talking, 'prompt'>
  readonly #shown: () => number
  readonly #kept: UnsentPrompts
  #sending = Promise.resolve()
  #attempt = 0
  #pause: ReturnType<typeof setTimeout> | undefined
  #resting = false

  /** `shown` is the seq up to which the stream has been seen. */
  constructor(workerId: string, calls: Pick<Talking, 'prompt'>, shown: () => number) {
    this.#calls = calls
    this.#shown = shown
    this.#kept = new UnsentPrompts(workerId)
    this.#tell()
  }

  say(text: string, imageIds: readonly string[] = []): Promise<void> {
    this.#kept.add({ promptId: randomId(), text, imageIds, at: new Date().toISOString() })
    return this.send()
  }

  /** One that was refused goes out again. */
  retry(promptId: string): Promise<void> {
    this.#kept.mark(promptId, undefined)
    return this.send()
  }

  discard(promptId: string): void {
    this.#kept.remove(promptId)
    this.#tell()
  }

  /** The stream shows these events. */
  seen(events: readonly SessionEvent[]): void {
    for (const { type, data } of events) {
      if (type === 'user_prompt') this.#kept.remove(String(data.promptId))
      else if (type === 'queue_added') this.#kept.remove(String(data.id))
    }
    this.#tell()
  }

  /** All that wait, one after the other, so that they arrive in the order they were written. */
  send(): Promise<void> {
    this.#resting = false
    clearTimeout(this.#pause)
    this.#tell()
    // Whoever sent before has been told what went wrong, and nobody after them waits for it.
    this.#sending = this.#sending.catch(() => {}).then(() => this.#sendAll())
    return this.#sending
  }

  /** The network or the user is back: do not sit out the pause. */
  nudge(): void {
    if (this.obstacle && !this.#resting) void this.send()
  }

  /** Nobody shows this agent any more; whoever does next sends what waits. */
  rest(): void {
    this.#resting = true
    clearTimeout(this.#pause)
  }

  async #sendAll(): Promise<void> {
    for (const prompt of this.#kept.all.filter(({ problem }) => problem === undefined)) {
      try {
        const { seq } = await this.#calls.prompt(prompt)
        this.#answered()
        if (seq <= this.#shown()) this.#kept.remove(prompt.promptId) // the stream has it, perhaps long ago
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if (error.passes) {
          this.#tryLater(error.message)
          break
        }
        this.#answered()
        this.#kept.mark(prompt.promptId, error.message)
      }
    }
    this.#tell()
  }

  #answered(): void {
    this.#attempt = 0
    this.obstacle = undefined
  }

  /** The socket may outlive a cut that requests do not, so a next connection need not come. */
  #tryLater(obstacle: string): void {
    this.obstacle = obstacle
    if (!this.#resting) this.#pause = setTimeout(() => void this.send(), backoff(this.#attempt++))
  }

  #tell(): void {
    this.unsent = this.#kept.all
  }
}
