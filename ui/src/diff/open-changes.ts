/** Open the changes of a session in a tab and scroll to one file. */
import { SvelteMap } from 'svelte/reactivity'
import type { Session } from '../api/types/sessions.ts'
import type { App } from '../state/app.ts'
import { tabWorkers } from '../state/tab-workers.ts'
import * as layout from '../state/layout.ts'

/** The file to scroll to, by session id. The diff view scrolls to it and removes it. */
export const requestedFiles = new SvelteMap<string, string>()

/**
 * Show the changes of a session in a tab, in a new one if there is none; `path` is the file to scroll to. An archived
 * session gets no new tab: its panel shows the whole diff.
 */
export function openChanges({ page, layouts, view }: App, session: Session, path?: string): void {
  if (path !== undefined) requestedFiles.set(session.id, path)
  const shown = tabWorkers(session).find((worker) => worker.type === 'diff')
  if (!shown && session.status !== 'active') return void (view.panel = 'changes')
  if (!shown) return void page.addWorker(session, { type: 'diff', name: 'Changes' })
  layouts.change(session, (before) => layout.show(before, shown.id))
  page.show({ view: 'session', sessionId: session.id, workerId: shown.id }, true)
}
