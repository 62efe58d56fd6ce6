/** Send terminal input in numbered batches, and send it again on each new connection until it is acknowledged. */
import type { Outbox } from './outbox.ts'

export interface Line {
  readonly isOpen: boolean
  send(message: object): void
  restart(): void
}

const PATIENCE = 10_000 // milliseconds without an acknowledgement
const SECOND_TRY = 500 // milliseconds after a refusal

export class Keyboard {
  readonly #outbox: Outbox
  readonly #line: Line
  #watchdog: ReturnType<typeof setTimeout> | undefined

  constructor(outbox: Outbox, line: Line) {
    this.#outbox = outbox
    this.#line = line
  }

  type(data: string): void {
    this.#outbox.push(data)
    this.#flush()
  }

  /** Send all unacknowledged input again on a new connection. */
  resume(): void {
    this.#outbox.rewind()
    this.#flush()
  }

  taken(n: number): void {
    this.#outbox.acknowledge(n)
    this.rest()
    this.#watch()
  }

  /** Send unacknowledged input again soon, because the server refused it; the program may still be starting. */
  refused(): void {
    if (this.#outbox.empty) return
    this.rest()
    this.#watchdog = setTimeout(() => {
      this.rest()
      this.resume()
    }, SECOND_TRY)
  }

  /** Delete all unacknowledged input, because no program can read it. */
  discard(): void {
    this.#outbox.clear()
    this.rest()
  }

  /** Stop waiting for an acknowledgement. */
  rest(): void {
    clearTimeout(this.#watchdog)
    this.#watchdog = undefined
  }

  #flush(): void {
    if (!this.#line.isOpen) return
    for (const batch of this.#outbox.take()) this.#line.send({ type: 'input', ...batch })
    this.#watch()
  }

  /** Replace the connection if it does not acknowledge input in time, even if the socket is open. */
  #watch(): void {
    if (!this.#outbox.empty) this.#watchdog ??= setTimeout(() => this.#line.restart(), PATIENCE)
  }
}
