/** Describe the state of a worker in the same words as `bullpen show` (cli/text.py). For a running worker the text is the reason of its activity. */
import type { Worker } from '../api/types/workers.ts'

export function workerStateText({ state, activityWhy, exitCode, signal, error }: Worker): string {
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
