/**
 * What a person left in the page (a draft, a place in a list, the open tab) and finds again after a reload:
 * kept in this origin's storage, written 500 ms after the last change and at once when the page goes.
 */
import { createSubscriber } from 'svelte/reactivity'

const PREFIX = 'bullpen.view.'
const PAUSE = 500
const KEPT = 90 * 24 * 3600 * 1000

interface Stored {
  at: number
  value: unknown
}

const waiting = new Set<Remembered<unknown>>()
const known = new Map<string, Remembered<unknown>>()

/** The same key is the same thing everywhere in the page; `initial` counts when nothing was kept. */
export function remembered<T>(key: string, initial: T): Remembered<T> {
  const found = known.get(key) ?? new Remembered<unknown>(key, initial)
  known.set(key, found)
  return found as Remembered<T>
}

/** Reading `value` in a component or an effect follows it; setting it is remembered. Values are JSON. */
export class Remembered<T> {
  readonly #key: string
  readonly #initial: T
  #value: T
  #timer: ReturnType<typeof setTimeout> | undefined
  #changed = () => {}
  readonly #follow = createSubscriber((update) => {
    this.#changed = update
    return () => (this.#changed = () => {})
  })

  constructor(key: string, initial: T) {
    this.#key = PREFIX + key
    this.#initial = initial
    const kept = read(this.#key)
    this.#value = kept ? (kept.value as T) : initial
  }

  get value(): T {
    this.#follow()
    return this.#value
  }

  set value(value: T) {
    if (Object.is(value, this.#value)) return
    this.#value = value
    this.#changed()
    waiting.add(this as Remembered<unknown>)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.flush(), PAUSE)
  }

  /** Back to the beginning, and nothing of it kept. */
  forget(): void {
    this.value = this.#initial
    this.flush()
  }

  flush(): void {
    clearTimeout(this.#timer)
    waiting.delete(this as Remembered<unknown>)
    if (Object.is(this.#value, this.#initial)) localStorage.removeItem(this.#key)
    else write(this.#key, { at: Date.now(), value: this.#value })
  }
}

/** Everything that still waits for its pause to end; the page may not be there then. */
export function flushRemembered(): void {
  for (const each of [...waiting]) each.flush()
}

/** What nobody has changed for months: sessions come and go, their tabs and drafts need not stay for ever. */
export function forgetOld(now = Date.now()): void {
  const keys = Array.from({ length: localStorage.length }, (_, n) => localStorage.key(n) ?? '')
  for (const key of keys.filter((each) => each.startsWith(PREFIX)))
    if ((read(key)?.at ?? 0) < now - KEPT) localStorage.removeItem(key)
}

function read(key: string): Stored | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? 'null') as Stored | null
    return kept && typeof kept === 'object' && 'value' in kept ? kept : undefined
  } catch {
    return undefined // not ours, or of another version
  }
}

function write(key: string, stored: Stored): void {
  try {
    localStorage.setItem(key, JSON.stringify(stored))
  } catch (error) {
    console.warn('The page cannot remember this; its storage is full.', key, error)
  }
}

if (typeof window !== 'undefined') {
  window.addEventListener('pagehide', flushRemembered)
  // A phone may end a page in the background without another word.
  document.addEventListener('visibilitychange', () => document.visibilityState === 'hidden' && flushRemembered())
}
