/** The state of the search in all sessions: query, filters and results. It survives opening a result and coming back. */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { Found } from '../api/types/search.ts'
import type { IconName } from '../parts/icons.ts'

const STEP = 30
const MOST = 200
const AGAIN = [500, 1000, 2000, 4000, 8000, 16_000] // milliseconds between repeated searches, because new text is indexed with a delay

export interface Filters {
  repoId: string
  agentId: string
  role: string
  /** Days back; empty for all time. */
  days: string
}

const DAY = 86_400_000 // ms

export class Searching {
  words = $state('')
  filters: Filters = $state({ repoId: '', agentId: '', role: '', days: '' })
  /** The results, or `undefined` before the first answer. */
  results: readonly Found[] | undefined = $state.raw()
  busy = $state(false)
  problem: string | undefined = $state()
  limit = $state(STEP)
  #looks = 0 // only the latest counts
  #pauses: number[] = []
  #timer: ReturnType<typeof setTimeout> | undefined

  get hasMore(): boolean {
    return (this.results?.length ?? 0) >= this.limit && this.limit < MOST
  }

  more(): Promise<void> {
    this.limit = Math.min(this.limit + STEP * 2, MOST)
    return this.look()
  }

  /** Start a new search with the first page of results. */
  again(): Promise<void> {
    this.limit = STEP
    return this.look()
  }

  /** Search now, and repeat the search a few times, because the index may lag behind. */
  look(): Promise<void> {
    this.#pauses = [...AGAIN]
    this.busy = hasWord(this.words)
    return this.#ask()
  }

  /** Stop repeating the search, because the view is closed or the query changes. */
  rest(): void {
    this.#pauses = []
    clearTimeout(this.#timer)
  }

  async #ask(): Promise<void> {
    clearTimeout(this.#timer)
    const look = ++this.#looks
    if (!hasWord(this.words)) {
      this.results = this.problem = undefined
      return
    }
    try {
      const { results } = await rest.search(queryOf(this.words, this.filters, this.limit))
      if (look !== this.#looks) return
      this.results = results
      this.problem = undefined
      this.#askLater()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (look === this.#looks) this.problem = error.message
    } finally {
      if (look === this.#looks) this.busy = false
    }
  }

  #askLater(): void {
    const pause = this.#pauses.shift()
    if (pause !== undefined) this.#timer = setTimeout(() => void this.#ask(), pause)
  }
}

export const searching = new Searching()

/** Return whether a query has a letter or digit; other characters are not searched. */
export function hasWord(words: string): boolean {
  return /[\p{L}\p{N}_]/u.test(words)
}

/** Return the query parameters of a search request. */
export function queryOf(words: string, { days, ...filters }: Filters, limit: number, now = Date.now()): Record<string, string> {
  const after = days && new Date(now - Number(days) * DAY).toISOString()
  const chosen = Object.entries({ ...filters, after }).filter(([, value]) => value)
  return { q: words.trim(), limit: String(limit), ...Object.fromEntries(chosen) }
}

/** Split a text at the words of a query; every second piece is a match. */
export function pieces(text: string, words: string): string[] {
  const wanted = words.match(/[\p{L}\p{N}_]+/gu)?.toSorted((a, b) => b.length - a.length)
  return wanted ? text.split(new RegExp(`(${wanted.join('|')})`, 'giu')) : [text]
}

/** Return the label and icon of a result that is no message: a plan, an error or a tool call. */
export function deedOf({ role, type }: Pick<Found, 'role' | 'type'>): { label: string; icon: IconName } | undefined {
  if (role !== 'system') return undefined
  if (type === 'plan') return { label: 'Plan', icon: 'plan' }
  if (type === 'error' || type === 'worker_failed') return { label: 'Error', icon: 'alert' }
  return { label: 'Tool call', icon: 'settings' }
}
