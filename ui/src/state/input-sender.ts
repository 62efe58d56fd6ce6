/** Send terminal input in numbered batches, and send it again on each new connection until it is acknowledged. */
import type { UnacknowledgedInput } from './unacknowledged-input.ts'

/** The part of a connection that sends input. */
export interface InputConnection {
  readonly isOpen: boolean
  send(message: object): void
  restart(): void
}

const ACKNOWLEDGE_TIMEOUT_MS = 10_000
const RETRY_MS = 500 // after a refusal

/** Sends the input of one terminal run. */
export class InputSender {
  readonly #unacknowledged: UnacknowledgedInput
  readonly #connection: InputConnection
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(input: UnacknowledgedInput, connection: InputConnection) {
    this.#unacknowledged = input
    this.#connection = connection
  }

  /** Number what was typed, keep it until it is acknowledged, and send it. */
  type(data: string): void {
    this.#unacknowledged.push(data)
    this.#flush()
  }

  /** Send all unacknowledged input again on a new connection. */
  resendAll(): void {
    this.#unacknowledged.rewind()
    this.#flush()
  }

  /** Forget the batches up to `n`, which the server has acknowledged, and wait for the acknowledgement of the next ones. */
  acknowledged(n: number): void {
    this.#unacknowledged.acknowledge(n)
    this.stopWaiting()
    this.#expectAcknowledgement()
  }

  /** Send unacknowledged input again soon, because the server refused it; the program may still be starting. */
  retrySoon(): void {
    if (this.#unacknowledged.empty) return
    this.stopWaiting()
    this.#timer = setTimeout(() => {
      this.stopWaiting()
      this.resendAll()
    }, RETRY_MS)
  }

  /** Delete all unacknowledged input, because no program can read it. */
  discard(): void {
    this.#unacknowledged.clear()
    this.stopWaiting()
  }

  /** Stop waiting for an acknowledgement. */
  stopWaiting(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #flush(): void {
    if (!this.#connection.isOpen) return
    for (const batch of this.#unacknowledged.take()) this.#connection.send({ type: 'input', ...batch })
    this.#expectAcknowledgement()
  }

  /** Replace the connection if it does not acknowledge input in time, even if the socket is open. */
  #expectAcknowledgement(): void {
    if (!this.#unacknowledged.empty) this.#timer ??= setTimeout(() => this.#connection.restart(), ACKNOWLEDGE_TIMEOUT_MS)
  }
}
