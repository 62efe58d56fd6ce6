/**
 * Tell the server while a session is visible on the screen, so that the user is not notified about it. This needs its
 * own socket, because a session with only terminals has no other; closing the socket withdraws the information.
 */
import { Connection, socketAddress } from '../api/connection.ts'

export class SessionPresence {
  readonly #connection: Connection

  constructor(sessionId: string) {
    this.#connection = new Connection({
      address: () => socketAddress(`/session/${encodeURIComponent(sessionId)}`),
      opened: () => this.#sendVisibility(),
      message: () => {}, // without a subscription, only heartbeats arrive
      status: () => {},
    })
  }

  open(): void {
    this.#connection.open()
  }

  close(): void {
    this.#connection.close()
  }

  /** Send the new visibility of the page. */
  visibilityChanged(): void {
    this.#sendVisibility()
    this.retryNow()
  }

  retryNow(): void {
    this.#connection.retryNow()
  }

  #sendVisibility(): void {
    this.#connection.send({ type: 'looking', visible: document.visibilityState === 'visible' })
  }
}
