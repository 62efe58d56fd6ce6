/**
 * Values that survive a reload, such as drafts, settings and layouts. They are kept in the local storage of this origin,
 * written 500 ms after the last change and immediately when the page closes.
 */
import { createSubscriber } from 'svelte/reactivity'

const PREFIX = 'bullpen.view.'
const WRITE_DELAY_MS = 500
const MAX_AGE_MS = 90 * 24 * 3600 * 1000

interface Stored {
  at: number
  value: unknown
}

const unwritten = new Set<Remembered<unknown>>()
const byKey = new Map<string, Remembered<unknown>>()

/** Return the value of a key, which is one object for the whole page; `initial` is used if nothing is stored. */
export function remembered<T>(key: string, initial: T): Remembered<T> {
  const existing = byKey.get(key) ?? new Remembered<unknown>(key, initial)
  byKey.set(key, existing)
  return existing as Remembered<T>
}

/** One stored value, which must be JSON. Components that read `value` update when it changes; setting it stores it. */
export class Remembered<T> {
  readonly #key: string
  readonly #initial: T
  #value: T
  #timer: ReturnType<typeof setTimeout> | undefined
  #changed = () => {}
  readonly #subscribe = createSubscriber((update) => {
    this.#changed = update
    return () => (this.#changed = () => {})
  })

  constructor(key: string, initial: T) {
    this.#key = PREFIX + key
    this.#initial = initial
    const stored = read(this.#key)
    this.#value = stored ? (stored.value as T) : initial
  }

  get value(): T {
    this.#subscribe()
    return this.#value
  }

  set value(value: T) {
    if (Object.is(value, this.#value)) return
    this.#value = value
    this.#changed()
    unwritten.add(this as Remembered<unknown>)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.flush(), WRITE_DELAY_MS)
  }

  /** Restore the initial value and delete the stored one. */
  forget(): void {
    this.value = this.#initial
    this.flush()
  }

  /** Write the value now. */
  flush(): void {
    clearTimeout(this.#timer)
    unwritten.delete(this as Remembered<unknown>)
    if (Object.is(this.#value, this.#initial)) localStorage.removeItem(this.#key)
    else write(this.#key, { at: Date.now(), value: this.#value })
  }
}

/** Write all pending changes now, because the page may close. */
export function flushRemembered(): void {
  for (const each of [...unwritten]) each.flush()
}

/** Delete values that were not changed for 90 days, such as drafts and layouts of old sessions. */
export function forgetOld(now = Date.now()): void {
  const keys = Array.from({ length: localStorage.length }, (_, n) => localStorage.key(n) ?? '')
  for (const key of keys.filter((each) => each.startsWith(PREFIX)))
    if ((read(key)?.at ?? 0) < now - MAX_AGE_MS) localStorage.removeItem(key)
}

/** Return what is stored under a key; undefined if nothing valid is stored. */
function read(key: string): Stored | undefined {
  try {
    const stored = JSON.parse(localStorage.getItem(key) ?? 'null') as Stored | null
    return stored && typeof stored === 'object' && 'value' in stored ? stored : undefined
  } catch {
    return undefined // invalid, or of another version
  }
}

/** Store a value; a full storage is only logged. */
function write(key: string, stored: Stored): void {
  try {
    localStorage.setItem(key, JSON.stringify(stored))
  } catch (error) {
    console.warn('This value is not stored, because the storage of the page is full.', key, error)
  }
}

if (typeof window !== 'undefined') {
  window.addEventListener('pagehide', flushRemembered)
  // A phone may end a page in the background without another event.
  document.addEventListener('visibilitychange', () => document.visibilityState === 'hidden' && flushRemembered())
}
