/** Describe the state of an agent, a terminal or a document. For a running one the text is the reason of its activity. */
import type { Worker } from '../api/types/workers.ts'

export function workerStateText({ state, activityWhy, exitCode, signal, error }: Worker): string {
  switch (state) {
    case 'active':
      return activityWhy
    case 'exited':
      if (signal) return `ended by signal ${signal}`
      return exitCode ? `finished (exit code ${exitCode})` : 'finished'
    case 'failed':
      return error?.replace(/^it /, '') ?? 'failed'
    case 'spawning':
      return 'starting'
    case 'terminated':
      return 'stopped'
  }
}
