/** Opens the changes of a session in a tab, and turns to one file of them. */
import { SvelteMap } from 'svelte/reactivity'
import type { Session } from '../api/types/sessions.ts'
import type { App } from '../state/app.ts'
import * as layout from '../state/layout.ts'

/** The file that was asked for last, by session; who shows the changes goes there and forgets it. */
export const asked = new SvelteMap<string, string>()

export function openChanges({ page, layouts }: App, session: Session, path?: string): void {
  if (path !== undefined) asked.set(session.id, path)
  const shown = session.workers.find((worker) => worker.type === 'diff' && worker.state !== 'terminated')
  if (!shown) return void page.addWorker(session, { type: 'diff', name: 'Changes' })
  layouts.change(session, (before) => layout.show(before, shown.id))
  page.show({ view: 'session', sessionId: session.id, workerId: shown.id }, true)
}
