/** Actions on sessions, agents and terminals with their confirmation dialogs, shared by menus, shortcuts and the palette. */
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import type { App } from '../state/app.ts'
import * as layout from '../state/layout.ts'

export function isAlive(worker: Worker): boolean {
  return worker.state === 'spawning' || worker.state === 'active'
}

/** Return whether a running program belongs to a worker, unlike to changes or a document. */
export function runsProgram(worker: Worker): boolean {
  return isAlive(worker) && (worker.type === 'agent' || worker.type === 'terminal')
}

/** Ask for confirmation, then delete an archived session with its events and recordings. */
export function askToDelete({ page, view }: App, session: Session): void {
  view.confirm({
    title: `Delete “${session.title}” permanently?`,
    text: 'Its conversation, terminal recordings and share links are deleted. Files in its directory stay.',
    choices: [
      { label: 'Keep', run: () => {} },
      { label: 'Delete permanently', kind: 'danger', run: () => page.purge(session) },
    ],
  })
}

/** Close the tab of an agent or a terminal. If it is running, ask whether to stop it or to keep it running. */
export function closeTab(app: App, session: Session, worker: Worker): void {
  const hide = () => app.layouts.change(session, (before) => layout.hide(before, worker.id))
  if (!runsProgram(worker)) return hide()
  app.view.confirm({
    title: `Close the tab of ${worker.name}?`,
    text: worker.type === 'agent' ? 'The agent can keep running without its tab, or stop now.' : 'The program can keep running without its tab, or stop now.',
    choices: [
      { label: 'Stop', kind: 'danger', run: async () => (await app.page.stop(worker)) && hide() },
      { label: 'Keep running', kind: 'primary', run: hide },
    ],
  })
}
