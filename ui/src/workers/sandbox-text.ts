/** Describe the sandbox level of a worker in the words of the page. */

import type { Worker } from '../api/types/workers.ts'

const TEXTS: Record<NonNullable<Worker['sandbox']>, string> = {
  open: 'no sandbox',
  workspace: 'sandbox: its workspace',
  sealed: 'sandbox: its workspace, no network',
}

/** Return the text for the level of a worker; empty for one without a process, and for runs of older servers. */
export function sandboxText(worker: Pick<Worker, 'sandbox'>): string {
  return worker.sandbox ? TEXTS[worker.sandbox] : ''
}
