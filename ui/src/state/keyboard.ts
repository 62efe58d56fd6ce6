/** Keys on their way to the child: sent under their numbers, sent again on every new line, watched until taken. */
import type { Outbox } from './outbox.ts'

export interface Line {
  readonly isOpen: boolean
  send(message: object): void
  restart(): void
}

const PATIENCE = 10_000
const SECOND_TRY = 500

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

  /** The line is new: what the old one took without a word goes out again. */
  resume(): void {
    this.#outbox.rewind()
    this.#flush()
  }

  taken(n: number): void {
    this.#outbox.acknowledge(n)
    this.rest()
    this.#watch()
  }

  /** Something was refused, as by a child that is still being started: what is open goes out again soon. */
  refused(): void {
    if (this.#outbox.empty) return
    this.rest()
    this.#watchdog = setTimeout(() => {
      this.rest()
      this.resume()
    }, SECOND_TRY)
  }

  /** Nobody is left to read it. */
  discard(): void {
    this.#outbox.clear()
    this.rest()
  }

  /** Expect no acknowledgement for now. */
  rest(): void {
    clearTimeout(this.#watchdog)
    this.#watchdog = undefined
  }

  #flush(): void {
    if (!this.#line.isOpen) return
    for (const batch of this.#outbox.take()) this.#line.send({ type: 'input', ...batch })
    this.#watch()
  }

  /** A line that takes keys and never acknowledges is dead, whatever the socket believes. */
  #watch(): void {
    if (!this.#outbox.empty) this.#watchdog ??= setTimeout(() => this.#line.restart(), PATIENCE)
  }
}
