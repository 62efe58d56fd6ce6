/** Store the layout of each session in the browser and update it with the current workers. */
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import * as layout from './layout.ts'
import type { Layout } from './layout.ts'
import { remembered, type Remembered } from './remembered.ts'

export class Layouts {
  /** Return the current layout of a session. */
  of(session: Session): Layout {
    return layout.reconcile(this.#stored(session.id).value, shownWorkers(session))
  }

  change(session: Session, update: (before: Layout) => Layout): void {
    this.#stored(session.id).value = update(this.of(session))
  }

  /** Return the shown worker of the focused pane. */
  active(session: Session): Worker | undefined {
    const { active } = layout.focusedPane(this.of(session))
    return session.workers.find((worker) => worker.id === active)
  }

  #stored(sessionId: string): Remembered<Layout> {
    return remembered(`layout.${sessionId}`, layout.NEW)
  }
}

/** Return the workers of a layout: those that are not terminated, and the primary agent. Commands of agents have no tab at first. */
function shownWorkers(session: Session): { id: string; shown: boolean }[] {
  const primary = session.workers.find((worker) => worker.type === 'agent')
  return session.workers
    .filter((worker) => worker.state !== 'terminated' || worker.id === primary?.id)
    .map((worker) => ({ id: worker.id, shown: !isCommandOfAgent(worker) }))
}

/** Return whether a terminal runs a command of an agent. Its id is a UUID of version 5, made from the request of the agent; other ids are random. */
function isCommandOfAgent(worker: Worker): boolean {
  return worker.type === 'terminal' && worker.id[14] === '5'
}
