/** Actions on sessions and workers with their confirmation dialogs, shared by menus, shortcuts and the palette. */
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import type { App } from '../state/app.ts'
import * as layout from '../state/layout.ts'

export function isAlive(worker: Worker): boolean {
  return worker.state === 'spawning' || worker.state === 'active'
}

/** Ask for confirmation, then end a session. */
export function askToEnd({ page, view }: App, session: Session): void {
  view.confirm({
    title: `End “${session.title}”?`,
    text: 'All its processes are stopped. Its conversation and recordings stay and can be read.',
    choices: [
      { label: 'Keep', run: () => {} },
      { label: 'End session', kind: 'danger', run: () => page.end(session) },
    ],
  })
}

/** Ask for confirmation, then delete a session with its events and recordings. */
export function askToPurge({ page, view }: App, session: Session): void {
  view.confirm({
    title: `Delete “${session.title}” for good?`,
    text: 'Its conversation and recordings are deleted. Files in its directory stay.',
    choices: [
      { label: 'Keep', run: () => {} },
      { label: 'Delete for good', kind: 'danger', run: () => page.purge(session) },
    ],
  })
}

/** Leave a session, and ask whether its agents shall end or keep running. Its sockets are closed in both cases. */
export function leaveSession({ page, view }: App, session: Session): void {
  const agents = session.workers.filter((worker) => worker.type === 'agent' && isAlive(worker))
  const leave = () => page.show({ view: 'home' })
  if (!agents.length) return leave()
  view.confirm({
    title: 'Leave this session?',
    text: `${agents.length === 1 ? 'An agent is' : `${agents.length} agents are`} running in this session. ${agents.length === 1 ? 'It' : 'They'} can keep running without this page; the session stays in the list.`,
    choices: [
      { label: agents.length === 1 ? 'End agent and leave' : 'End agents and leave', kind: 'danger', run: async () => (await page.endWorkers(agents)) && leave() },
      { label: 'Leave, keep running', kind: 'primary', run: leave },
    ],
  })
}

/** Close the tab of a worker. If the worker is running, ask whether it shall end or keep running. */
export function closeTab(app: App, session: Session, worker: Worker): void {
  const hide = () => app.layouts.change(session, (before) => layout.hide(before, worker.id))
  if (!isAlive(worker)) return hide()
  app.view.confirm({
    title: `Close ${worker.name}?`,
    text: worker.type === 'agent' ? 'The agent can keep running without its tab, or end now.' : 'The program can keep running without its tab, or end now.',
    choices: [
      { label: 'End it', kind: 'danger', run: async () => (await app.page.endWorkers([worker])) && hide() },
      { label: 'Keep running', kind: 'primary', run: hide },
    ],
  })
}
