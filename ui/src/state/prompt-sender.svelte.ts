/**
 * Send prompts to an agent reliably: each prompt is stored until it appears in the event stream. Prompts are sent in
 * order, and again with the same id after a lost connection, a reload or a missing answer.
 */
import { backoff } from '../api/backoff.ts'
import { ApiError } from '../api/http.ts'
import { randomId } from '../api/random.ts'
import type { ConversationApi } from '../api/conversation-api.ts'
import type { SessionEvent } from '../api/types/events.ts'
import { UnsentPrompts, type UnsentPrompt } from './unsent-prompts.ts'

/** Sends the prompts of one agent. */
export class PromptSender {
  /** The prompts that are not in the event stream yet. */
  unsent: readonly UnsentPrompt[] = $state.raw([])
  /** Why the last attempt to send failed, or undefined. Sending is repeated automatically. */
  obstacle: string | undefined = $state()

  readonly #calls: Pick<ConversationApi, 'prompt'>
  readonly #receivedSeq: () => number
  readonly #stored: UnsentPrompts
  #sending = Promise.resolve()
  #attempt = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #suspended = false

  /** `receivedSeq` returns the seq up to which events were received. */
  constructor(workerId: string, calls: Pick<ConversationApi, 'prompt'>, receivedSeq: () => number) {
    this.#calls = calls
    this.#receivedSeq = receivedSeq
    this.#stored = new UnsentPrompts(workerId)
    this.#publish()
  }

  /** Store a new prompt and send it. */
  submit(text: string, imageIds: readonly string[] = []): Promise<void> {
    this.#stored.add({ promptId: randomId(), text, imageIds, at: new Date().toISOString() })
    return this.send()
  }

  /** Send a refused prompt again. */
  retry(promptId: string): Promise<void> {
    this.#stored.mark(promptId, undefined)
    return this.send()
  }

  discard(promptId: string): void {
    this.#stored.remove(promptId)
    this.#publish()
  }

  /** Remove the prompts that are confirmed by these events. */
  confirm(events: readonly SessionEvent[]): void {
    for (const { type, data } of events) {
      if (type === 'user_prompt') this.#stored.remove(String(data.promptId))
      else if (type === 'queue_added') this.#stored.remove(String(data.id))
    }
    this.#publish()
  }

  /** Send all prompts that were not refused, one after the other, so that they arrive in the order in which they were written. */
  send(): Promise<void> {
    this.#suspended = false
    clearTimeout(this.#timer)
    this.#publish()
    // An earlier error was reported to its own caller; it does not stop later prompts.
    this.#sending = this.#sending.catch(() => {}).then(() => this.#sendAll())
    return this.#sending
  }

  /** Send now instead of after the pause, because the network or the user is back. */
  retryNow(): void {
    if (this.obstacle && !this.#suspended) void this.send()
  }

  /** Stop sending, because the agent is no longer shown. The next view of the agent sends the waiting prompts. */
  suspend(): void {
    this.#suspended = true
    clearTimeout(this.#timer)
  }

  async #sendAll(): Promise<void> {
    for (const prompt of this.#stored.all.filter(({ problem }) => problem === undefined)) {
      try {
        const { seq } = await this.#calls.prompt(prompt)
        this.#clearObstacle()
        if (seq <= this.#receivedSeq()) this.#stored.remove(prompt.promptId) // the event is already received
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if (error.isTransient) {
          this.#tryLater(error.message)
          break
        }
        this.#clearObstacle()
        this.#stored.mark(prompt.promptId, error.message)
      }
    }
    this.#publish()
  }

  #clearObstacle(): void {
    this.#attempt = 0
    this.obstacle = undefined
  }

  /** Repeat after a pause. The socket may stay open while requests fail, so waiting for a reconnect is not enough. */
  #tryLater(obstacle: string): void {
    this.obstacle = obstacle
    if (!this.#suspended) this.#timer = setTimeout(() => void this.send(), backoff(this.#attempt++))
  }

  /** Update `unsent` from the storage. */
  #publish(): void {
    this.unsent = this.#stored.all
  }
}
