/**
 * Of what a person who looks elsewhere is told, and when: after it has waited for a while, once a minute for a session at
 * most, and not while the session is on the screen. Permissions are always told: an agent stands still until they are given.
 * The server's webhook and command keep to the same.
 */
import type { InboxItem } from '../api/types/inbox.ts'

const AFTER = 5_000 // milliseconds something waits before
const PAUSE = 60_000 // between two of one session

export class Notifier {
  readonly #tell: (item: InboxItem) => void
  readonly #isOnScreen: (sessionId: string) => boolean
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>()
  readonly #told = new Map<string, number>() // when a session was last told of
  #known: Set<string> | undefined

  constructor(tell: (item: InboxItem) => void, isOnScreen: (sessionId: string) => boolean) {
    this.#tell = tell
    this.#isOnScreen = isOnScreen
  }

  /** What the inbox has now; what it had when we came is no news. */
  note(items: readonly InboxItem[]): void {
    const ids = new Set(items.map(({ id }) => id))
    for (const [id, timer] of this.#timers) if (!ids.has(id)) this.#drop(id, timer)
    for (const item of items) if (this.#known && !this.#known.has(item.id)) this.#dueIn(item, AFTER)
    this.#known = ids
  }

  stop(): void {
    for (const [id, timer] of this.#timers) this.#drop(id, timer)
    this.#known = undefined
  }

  #drop(id: string, timer: ReturnType<typeof setTimeout>): void {
    clearTimeout(timer)
    this.#timers.delete(id)
  }

  #dueIn(item: InboxItem, milliseconds: number): void {
    this.#timers.set(item.id, setTimeout(() => this.#due(item), milliseconds))
  }

  /** What falls into the pause waits for its end: by then it may have been answered. */
  #due(item: InboxItem): void {
    this.#timers.delete(item.id)
    if (item.kind !== 'permission') {
      if (this.#isOnScreen(item.sessionId)) return
      const rest = this.#pauseLeft(item.sessionId)
      if (rest > 0) return this.#dueIn(item, rest)
    }
    this.#told.set(item.sessionId, Date.now())
    this.#tell(item)
  }

  #pauseLeft(sessionId: string): number {
    const last = this.#told.get(sessionId)
    return last === undefined ? 0 : last + PAUSE - Date.now()
  }
}
