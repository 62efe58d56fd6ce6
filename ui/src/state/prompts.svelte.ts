/**
 * Send prompts to an agent reliably: each prompt is stored until it appears in the event stream. Prompts are sent in
 * order, and again with the same id after a lost connection, a reload or a missing answer.
 */
import { backoff } from '../api/backoff.ts'
import { ApiError } from '../api/http.ts'
import { randomId } from '../api/random.ts'
import type { Talking } from '../api/talking.ts'
import type { SessionEvent } from '../api/types/events.ts'
import { UnsentPrompts, type Unsent } from './unsent.ts'

export class Prompts {
  /** The prompts that are not in the event stream yet. */
  unsent: readonly Unsent[] = $state.raw([])
  /** Why the last attempt to send failed, or undefined. Sending is repeated automatically. */
  obstacle: string | undefined = $state()

  readonly #calls: Pick<Talking, 'prompt'>
  readonly #shown: () => number
  readonly #kept: UnsentPrompts
  #sending = Promise.resolve()
  #attempt = 0
  #pause: ReturnType<typeof setTimeout> | undefined
  #resting = false

  /** `shown` returns the seq up to which events were received. */
  constructor(workerId: string, calls: Pick<Talking, 'prompt'>, shown: () => number) {
    this.#calls = calls
    this.#shown = shown
    this.#kept = new UnsentPrompts(workerId)
    this.#tell()
  }

  /** Store a new prompt and send it. */
  say(text: string, imageIds: readonly string[] = []): Promise<void> {
    this.#kept.add({ promptId: randomId(), text, imageIds, at: new Date().toISOString() })
    return this.send()
  }

  /** Send a refused prompt again. */
  retry(promptId: string): Promise<void> {
    this.#kept.mark(promptId, undefined)
    return this.send()
  }

  discard(promptId: string): void {
    this.#kept.remove(promptId)
    this.#tell()
  }

  /** Remove the prompts that are confirmed by these events. */
  seen(events: readonly SessionEvent[]): void {
    for (const { type, data } of events) {
      if (type === 'user_prompt') this.#kept.remove(String(data.promptId))
      else if (type === 'queue_added') this.#kept.remove(String(data.id))
    }
    this.#tell()
  }

  /** Send all waiting prompts one after the other, so that they arrive in the order in which they were written. */
  send(): Promise<void> {
    this.#resting = false
    clearTimeout(this.#pause)
    this.#tell()
    // An earlier error was reported to its own caller; it does not stop later prompts.
    this.#sending = this.#sending.catch(() => {}).then(() => this.#sendAll())
    return this.#sending
  }

  /** Send now instead of after the pause, because the network or the user is back. */
  nudge(): void {
    if (this.obstacle && !this.#resting) void this.send()
  }

  /** Stop sending, because the agent is no longer shown. The next view of the agent sends the waiting prompts. */
  rest(): void {
    this.#resting = true
    clearTimeout(this.#pause)
  }

  async #sendAll(): Promise<void> {
    for (const prompt of this.#kept.all.filter(({ problem }) => problem === undefined)) {
      try {
        const { seq } = await this.#calls.prompt(prompt)
        this.#answered()
        if (seq <= this.#shown()) this.#kept.remove(prompt.promptId) // the event is already received
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

  /** Repeat after a pause. The socket may stay open while requests fail, so waiting for a reconnect is not enough. */
  #tryLater(obstacle: string): void {
    this.obstacle = obstacle
    if (!this.#resting) this.#pause = setTimeout(() => void this.send(), backoff(this.#attempt++))
  }

  #tell(): void {
    this.unsent = this.#kept.all
  }
}
