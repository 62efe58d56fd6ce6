/** Store the layout of each session in the browser and update it with the current workers. */
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import * as layout from './layout.ts'
import type { Layout } from './layout.ts'
import { remembered, type Remembered } from './remembered.ts'
import { isCommandOfAgent, tabWorkers } from './tab-workers.ts'

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

/** Return the workers of a layout. Commands of agents have no tab at first. */
function shownWorkers(session: Session): { id: string; shown: boolean }[] {
  return tabWorkers(session).map((worker) => ({ id: worker.id, shown: !isCommandOfAgent(worker) }))
}
