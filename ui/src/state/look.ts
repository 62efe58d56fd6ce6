/**
 * The word to the server that a person has a session before their eyes: what they see there they need not be notified of.
 * On a socket of its own, as a session that shows nothing but terminals has no other; gone with it is the word.
 */
import { Connection, socketAddress } from '../api/connection.ts'

export class Look {
  readonly #connection: Connection

  constructor(sessionId: string) {
    this.#connection = new Connection({
      address: () => socketAddress(`/session/${encodeURIComponent(sessionId)}`),
      opened: () => this.#say(),
      message: () => {}, // subscribed to nothing, it hears only that the server is there
      status: () => {},
    })
  }

  open(): void {
    this.#connection.open()
  }

  close(): void {
    this.#connection.close()
  }

  /** The page was hidden, or is seen again. */
  changed(): void {
    this.#say()
    this.nudge()
  }

  nudge(): void {
    this.#connection.nudge()
  }

  #say(): void {
    this.#connection.send({ type: 'looking', visible: document.visibilityState === 'visible' })
  }
}
