/** Open the changes of a session in a tab and scroll to one file. */
import { SvelteMap } from 'svelte/reactivity'
import type { Session } from '../api/types/sessions.ts'
import type { App } from '../state/app.ts'
import * as layout from '../state/layout.ts'

/** The file to scroll to, by session id. The diff view scrolls to it and removes it. */
export const requestedFiles = new SvelteMap<string, string>()

/** Show the changes of a session, in a new tab if there is none; `path` is the file to scroll to. */
export function openChanges({ page, layouts }: App, session: Session, path?: string): void {
  if (path !== undefined) requestedFiles.set(session.id, path)
  const shown = session.workers.find((worker) => worker.type === 'diff' && worker.state !== 'terminated')
  if (!shown) return void page.addWorker(session, { type: 'diff', name: 'Changes' })
  layouts.change(session, (before) => layout.show(before, shown.id))
  page.show({ view: 'session', sessionId: session.id, workerId: shown.id }, true)
}
