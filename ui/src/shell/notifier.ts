/**
 * Decide when to notify the user of an inbox item: after a delay, at most once a minute for each session, and not while
 * the session is on the screen. Permissions are exempt from the last two rules, because an agent waits for them.
 * The webhook and the command of the server follow the same rules.
 */
import type { InboxItem } from '../api/types/inbox.ts'

const DELAY_MS = 5_000 // how long an item waits before the notification
const SESSION_PAUSE_MS = 60_000 // between two notifications of one session

/** Schedules the notifications of one page. */
export class Notifier {
  readonly #notify: (item: InboxItem) => void
  readonly #isOnScreen: (sessionId: string) => boolean
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>()
  readonly #notifiedAt = new Map<string, number>() // the time of the last notification by session id
  #known: Set<string> | undefined

  constructor(notify: (item: InboxItem) => void, isOnScreen: (sessionId: string) => boolean) {
    this.#notify = notify
    this.#isOnScreen = isOnScreen
  }

  /** Compare the inbox with the previous call and schedule notifications of new items. The first call schedules none. */
  update(items: readonly InboxItem[]): void {
    const ids = new Set(items.map(({ id }) => id))
    for (const [id, timer] of this.#timers) if (!ids.has(id)) this.#cancel(id, timer)
    for (const item of items) if (this.#known && !this.#known.has(item.id)) this.#schedule(item, DELAY_MS)
    this.#known = ids
  }

  stop(): void {
    for (const [id, timer] of this.#timers) this.#cancel(id, timer)
    this.#known = undefined
  }

  #cancel(id: string, timer: ReturnType<typeof setTimeout>): void {
    clearTimeout(timer)
    this.#timers.delete(id)
  }

  #schedule(item: InboxItem, milliseconds: number): void {
    this.#timers.set(item.id, setTimeout(() => this.#notifyOrPostpone(item), milliseconds))
  }

  /** Notify of an item, or postpone it to the end of the pause of its session; the user may answer it before. */
  #notifyOrPostpone(item: InboxItem): void {
    this.#timers.delete(item.id)
    if (item.kind !== 'permission') {
      if (this.#isOnScreen(item.sessionId)) return
      const rest = this.#pauseLeft(item.sessionId)
      if (rest > 0) return this.#schedule(item, rest)
    }
    this.#notifiedAt.set(item.sessionId, Date.now())
    this.#notify(item)
  }

  /** Return the milliseconds until the session may notify again; 0 or less if it may now. */
  #pauseLeft(sessionId: string): number {
    const last = this.#notifiedAt.get(sessionId)
    return last === undefined ? 0 : last + SESSION_PAUSE_MS - Date.now()
  }
}
