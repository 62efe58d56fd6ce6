/** Load the usage of the last days, by day and by a chosen group. */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { Usage } from '../api/types/usage.ts'

const DAY = 86_400_000 // ms

/** The UTC offset of this browser in minutes, by which the server divides days. */
export const OFFSET = -new Date().getTimezoneOffset()

export class Report {
  byDay: Usage | undefined = $state.raw()
  grouped: Usage | undefined = $state.raw()
  problem: string | undefined = $state()
  #looks = 0 // requests; only the answer to the latest is used

  async look(days: number, by: Usage['by']): Promise<void> {
    const look = ++this.#looks
    const query = { utcOffset: String(OFFSET), after: firstMoment(days), limit: '400' }
    try {
      const [byDay, grouped] = await Promise.all([rest.usage({ ...query, by: 'day' }), rest.usage({ ...query, by })])
      if (look === this.#looks) [this.byDay, this.grouped, this.problem] = [byDay, grouped, undefined]
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (look === this.#looks) this.problem = error.message
    }
  }
}

/** Return the beginning of the first shown day. */
function firstMoment(days: number): string {
  const first = new Date(Date.now() - (days - 1) * DAY)
  first.setHours(0, 0, 0, 0)
  return first.toISOString()
}
