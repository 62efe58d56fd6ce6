/** The outboxes of this page load: numbers go on where they were when a terminal is opened a second time. */
import type { Worker } from '../api/types.ts'
import { TerminalLink } from './link.svelte.ts'
import { Outbox } from './outbox.ts'

const outboxes = new Map<string, Outbox>()

export function linkTo({ id, run, sessionId }: Worker): TerminalLink {
  const key = `${id}/${run}` // a restarted worker is a new child, which has heard nothing yet
  const outbox = outboxes.get(key) ?? new Outbox()
  outboxes.set(key, outbox)
  return new TerminalLink(sessionId, id, outbox)
}
