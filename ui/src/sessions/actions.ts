/** What can be done to a session and its workers, with the questions that come before: menus, keys and palette share it. */
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import type { App } from '../state/app.ts'
import * as layout from '../state/layout.ts'

export function isAlive(worker: Worker): boolean {
  return worker.state === 'spawning' || worker.state === 'active'
}

export function askToEnd({ page, view }: App, session: Session): void {
  view.ask({
    title: `End “${session.title}”?`,
    text: 'Every process in it is ended. What was said and done stays and can be read.',
    choices: [
      { label: 'Keep', run: () => {} },
      { label: 'End session', kind: 'danger', run: () => page.end(session) },
    ],
  })
}

export function askToPurge({ page, view }: App, session: Session): void {
  view.ask({
    title: `Delete “${session.title}” for good?`,
    text: 'Its conversation and its recordings are removed. Files in its directory stay.',
    choices: [
      { label: 'Keep', run: () => {} },
      { label: 'Delete for good', kind: 'danger', run: () => page.purge(session) },
    ],
  })
}

/** R11: leaving a session ends its agents when a person wants that; the sockets close either way. */
export function leaveSession({ page, view }: App, session: Session): void {
  const agents = session.workers.filter((worker) => worker.type === 'agent' && isAlive(worker))
  const leave = () => page.show({ view: 'home' })
  if (!agents.length) return leave()
  view.ask({
    title: 'Leave this session?',
    text: `${agents.length === 1 ? 'An agent runs' : `${agents.length} agents run`} here. Left alone, ${agents.length === 1 ? 'it goes' : 'they go'} on without a page; the session stays in the list.`,
    choices: [
      { label: agents.length === 1 ? 'End agent and leave' : 'End agents and leave', kind: 'danger', run: async () => (await page.endWorkers(agents)) && leave() },
      { label: 'Leave, keep running', kind: 'primary', run: leave },
    ],
  })
}

/** A tab of something that is over just goes; one that lives may go on without it. */
export function closeTab(app: App, session: Session, worker: Worker): void {
  const hide = () => app.layouts.change(session, (before) => layout.hide(before, worker.id))
  if (!isAlive(worker)) return hide()
  app.view.ask({
    title: `Close ${worker.name}?`,
    text: worker.type === 'agent' ? 'It can go on without its tab, or end now.' : 'The program can go on without its tab, or end now.',
    choices: [
      { label: 'End it', kind: 'danger', run: async () => (await app.page.endWorkers([worker])) && hide() },
      { label: 'Keep running', kind: 'primary', run: hide },
    ],
  })
}
