/** How a worker is, or how it ended, in the words of `bullpen show` (cli/text.py); of a living one the page knows the reason as well. */
import type { Worker } from '../api/types/workers.ts'

export function lifeOf({ state, activityWhy, exitCode, signal, error }: Worker): string {
  switch (state) {
    case 'active':
      return activityWhy
    case 'exited':
      if (signal) return `ended by ${signal}`
      return exitCode === null ? 'ended' : `ended with code ${exitCode}`
    case 'failed':
      return error ? `failed: ${error}` : 'failed'
    default:
      return state
  }
}
