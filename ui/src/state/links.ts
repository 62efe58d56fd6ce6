/** Keep the outbox of each terminal run for the life of the page, so that input numbers continue when a terminal is opened again. */
import type { Worker } from '../api/types/workers.ts'
import { TerminalLink } from './link.svelte.ts'
import { Outbox } from './outbox.ts'

const outboxes = new Map<string, Outbox>()

/** Return a new connection to a terminal worker. */
export function linkTo(worker: Worker): TerminalLink {
  return new TerminalLink(worker, (run) => outboxOf(`${worker.id}/${run}`))
}

function outboxOf(key: string): Outbox {
  const outbox = outboxes.get(key) ?? new Outbox()
  outboxes.set(key, outbox)
  return outbox
}
