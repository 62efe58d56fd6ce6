/** The layout of each session, remembered, and brought up to date with the workers it has now. */
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import * as layout from './layout.ts'
import type { Layout } from './layout.ts'
import { remembered, type Remembered } from './remembered.ts'

export class Layouts {
  /** The layout as it is to be drawn now. */
  of(session: Session): Layout {
    return layout.reconcile(this.#kept(session.id).value, shownWorkers(session))
  }

  change(session: Session, how: (before: Layout) => Layout): void {
    this.#kept(session.id).value = how(this.of(session))
  }

  /** The worker in the focused pane. */
  active(session: Session): Worker | undefined {
    const { active } = layout.focusedPane(this.of(session))
    return session.workers.find((worker) => worker.id === active)
  }

  #kept(sessionId: string): Remembered<Layout> {
    return remembered(`layout.${sessionId}`, layout.NEW)
  }
}

/** Every worker that is not over. Agents' own commands are a tab away, not a tab each. */
function shownWorkers(session: Session): { id: string; shown: boolean }[] {
  const primary = session.workers.find((worker) => worker.type === 'agent')
  return session.workers
    .filter((worker) => worker.state !== 'terminated' || worker.id === primary?.id)
    .map((worker) => ({ id: worker.id, shown: !isCommandOfAgent(worker) }))
}

/** The id of a terminal an agent ordered is made from its request (a UUID of version 5), every other one is random. */
function isCommandOfAgent(worker: Worker): boolean {
  return worker.type === 'terminal' && worker.id[14] === '5'
}
