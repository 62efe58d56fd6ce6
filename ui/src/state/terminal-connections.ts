/** Create connections to terminals, which keep the unacknowledged input of each run for the life of the page: input numbers continue when a terminal is opened again. */
import type { Worker } from '../api/types/workers.ts'
import { TerminalConnection } from './terminal-connection.svelte.ts'
import { UnacknowledgedInput } from './unacknowledged-input.ts'

const inputByRun = new Map<string, UnacknowledgedInput>()

/** Return a new connection to a terminal worker. */
export function newTerminalConnection(worker: Worker): TerminalConnection {
  return new TerminalConnection(worker, (run) => unacknowledgedInputOf(`${worker.id}/${run}`))
}

function unacknowledgedInputOf(key: string): UnacknowledgedInput {
  const input = inputByRun.get(key) ?? new UnacknowledgedInput()
  inputByRun.set(key, input)
  return input
}
