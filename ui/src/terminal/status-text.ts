/** Describe in one sentence how the program of a terminal ended, or what is wrong with the connection of the page to it. */
import type { Status } from '../api/connection.ts'
import type { Worker } from '../api/types/workers.ts'
import { failureText } from '../state/reasons.ts'

const CLOSED: Record<number, string> = {
  4401: 'You are logged out.',
  4403: 'You have no permission to see this terminal.',
  4404: 'This terminal no longer exists.',
  4409: 'This terminal was taken over by another connection.',
}

export interface End {
  exitCode: number | null
  signal: number | null
}

/** Return how the program of a terminal ended, or undefined if it is running. */
export function describeEnd(end: End | undefined, { state, error }: Pick<Worker, 'state' | 'error'>): string | undefined {
  if (!end) return undefined
  if (state === 'terminated') return 'Stopped.'
  if (error) return `${failureText({ name: 'The program' }, error)}.`
  if (end.signal) return `The program was ended by signal ${end.signal}.`
  return end.exitCode ? `The program has finished (exit code ${end.exitCode}).` : 'The program has finished.'
}

/** Return what is wrong with a connection, or undefined. */
export function describeConnection(status: Status, closeCode: number | undefined): string | undefined {
  if (status === 'closed' && closeCode !== undefined) return CLOSED[closeCode] ?? 'The connection was closed.'
  if (status === 'waiting') return 'Reconnecting. What you type is kept and sent when the connection is back.'
  return undefined
}
