/** Load the usage of the last days, by day and by a chosen group. */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { Usage } from '../api/types/usage.ts'

const DAY_MS = 86_400_000

/** The UTC offset of this browser in minutes, by which the server divides days. */
export const UTC_OFFSET_MINUTES = -new Date().getTimezoneOffset()

export class UsageReport {
  byDay: Usage | undefined = $state.raw()
  grouped: Usage | undefined = $state.raw()
  problem: string | undefined = $state()
  #requests = 0 // only the answer to the latest is used

  /** Load the usage of the last days, by day and by `by`; a later call replaces an answer that has not come yet. */
  async load(days: number, by: Usage['by']): Promise<void> {
    const request = ++this.#requests
    const query = { utcOffset: String(UTC_OFFSET_MINUTES), after: startOfPeriod(days), limit: '400' }
    try {
      const [byDay, grouped] = await Promise.all([rest.usage({ ...query, by: 'day' }), rest.usage({ ...query, by })])
      if (request === this.#requests) [this.byDay, this.grouped, this.problem] = [byDay, grouped, undefined]
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (request === this.#requests) this.problem = error.message
    }
  }
}

/** Return the beginning of the first shown day. */
function startOfPeriod(days: number): string {
  const first = new Date(Date.now() - (days - 1) * DAY_MS)
  first.setHours(0, 0, 0, 0)
  return first.toISOString()
}
