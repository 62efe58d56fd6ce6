/** Archive a session a few seconds after the user asked for it, so that it can be undone without any process having ended. */
import { rest } from '../api/rest.ts'
import type { Session } from '../api/types/sessions.ts'

export const UNDO_MS = 8000

export class Archiving {
  /** The session that is about to be archived. */
  pending: Session | undefined = $state.raw()
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #archive: (session: Session) => void

  constructor(archive: (session: Session) => void) {
    this.#archive = archive
  }

  /** Archive a session after the delay. An earlier one that is still pending is archived now. */
  begin(session: Session): void {
    this.finish()
    this.pending = session
    this.#timer = setTimeout(() => this.finish(), UNDO_MS)
  }

  /** Keep the session that is about to be archived. */
  undo(): void {
    clearTimeout(this.#timer)
    this.pending = undefined
  }

  /** Archive the pending session now. */
  finish(): void {
    const session = this.pending
    this.undo()
    if (session) this.#archive(session)
  }

  /** Archive the pending session while the page is closing. */
  finishWhileClosing(): void {
    if (this.pending) rest.archiveWhileClosing(this.pending.id)
    this.undo()
  }
}
