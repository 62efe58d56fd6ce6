/** The outboxes of this page load: numbers go on where they were when a terminal is opened a second time. */
import type { Worker } from '../api/types/workers.ts'
import { TerminalLink } from './link.svelte.ts'
import { Outbox } from './outbox.ts'

const outboxes = new Map<string, Outbox>()

export function linkTo(worker: Worker): TerminalLink {
  return new TerminalLink(worker, (run) => outboxOf(`${worker.id}/${run}`))
}

function outboxOf(key: string): Outbox {
  const outbox = outboxes.get(key) ?? new Outbox()
  outboxes.set(key, outbox)
  return outbox
}
