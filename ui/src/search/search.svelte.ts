/** The state of the search in all sessions: query, filters and results. It survives opening a result and coming back. */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { SearchHit } from '../api/types/search.ts'
import type { IconName } from '../parts/icons.ts'

const PAGE_SIZE = 30
const MAX_RESULTS = 200
const REPEAT_PAUSES_MS = [500, 1000, 2000, 4000, 8000, 16_000] // between repeated searches, because new text is indexed with a delay

export interface Filters {
  repoId: string
  agentId: string
  role: string
  /** Days back; empty for all time. */
  days: string
}

const DAY_MS = 86_400_000

/** The state of one search. */
export class SessionSearch {
  query = $state('')
  filters: Filters = $state({ repoId: '', agentId: '', role: '', days: '' })
  /** The results, or `undefined` before the first answer. */
  results: readonly SearchHit[] | undefined = $state.raw()
  busy = $state(false)
  problem: string | undefined = $state()
  limit = $state(PAGE_SIZE)
  #requests = 0 // only the answer to the latest is used
  #pauses: number[] = []
  #timer: ReturnType<typeof setTimeout> | undefined

  get hasMore(): boolean {
    return (this.results?.length ?? 0) >= this.limit && this.limit < MAX_RESULTS
  }

  /** Load more results. */
  more(): Promise<void> {
    this.limit = Math.min(this.limit + PAGE_SIZE * 2, MAX_RESULTS)
    return this.search()
  }

  /** Start a new search with the first page of results. */
  restart(): Promise<void> {
    this.limit = PAGE_SIZE
    return this.search()
  }

  /** Search now, and repeat the search a few times, because the index may lag behind. */
  search(): Promise<void> {
    this.#pauses = [...REPEAT_PAUSES_MS]
    this.busy = hasWord(this.query)
    return this.#request()
  }

  /** Stop repeating the search, because the view is closed or the query changes. */
  stopRepeating(): void {
    this.#pauses = []
    clearTimeout(this.#timer)
  }

  async #request(): Promise<void> {
    clearTimeout(this.#timer)
    const thisRequest = ++this.#requests
    if (!hasWord(this.query)) {
      this.results = this.problem = undefined
      return
    }
    try {
      const { results } = await rest.search(queryOf(this.query, this.filters, this.limit))
      if (thisRequest !== this.#requests) return
      this.results = results
      this.problem = undefined
      this.#requestLater()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (thisRequest === this.#requests) this.problem = error.message
    } finally {
      if (thisRequest === this.#requests) this.busy = false
    }
  }

  #requestLater(): void {
    const pause = this.#pauses.shift()
    if (pause !== undefined) this.#timer = setTimeout(() => void this.#request(), pause)
  }
}

export const sessionSearch = new SessionSearch()

/** Return whether a query has a letter or digit; other characters are not searched. */
export function hasWord(query: string): boolean {
  return /[\p{L}\p{N}_]/u.test(query)
}

/** Return the query parameters of a search request. */
export function queryOf(query: string, { days, ...filters }: Filters, limit: number, now = Date.now()): Record<string, string> {
  const after = days && new Date(now - Number(days) * DAY_MS).toISOString()
  const chosen = Object.entries({ ...filters, after }).filter(([, value]) => value)
  return { q: query.trim(), limit: String(limit), ...Object.fromEntries(chosen) }
}

/** Split a text at the words of a query; every second piece is a match. */
export function splitAtMatches(text: string, query: string): string[] {
  const wanted = query.match(/[\p{L}\p{N}_]+/gu)?.toSorted((a, b) => b.length - a.length)
  return wanted ? text.split(new RegExp(`(${wanted.join('|')})`, 'giu')) : [text]
}

/** Return the label and icon of a result that is no message: a plan, an error or a tool call. */
export function systemLabel({ role, type }: Pick<SearchHit, 'role' | 'type'>): { label: string; icon: IconName } | undefined {
  if (role !== 'system') return undefined
  if (type === 'plan') return { label: 'Plan', icon: 'plan' }
  if (type === 'error' || type === 'worker_failed') return { label: 'Error', icon: 'alert' }
  return { label: 'Tool call', icon: 'settings' }
}
