/**
 * The line between one terminal worker and the screen that shows it: bytes in by offset, keys out by number,
 * both exactly once over any number of connections.
 */
import { Connection, socketAddress, type Status } from '../api/connection.ts'
import { decodeOutput, type History, type TerminalMessage } from '../api/frames.ts'
import { randomId } from '../api/random.ts'
import type { Size } from '../api/types.ts'
import { Outbox } from './outbox.ts'
import { Position } from './position.ts'

/** What draws; `drawn` is called when the bytes are on the screen. */
export interface Screen {
  restore(history: Uint8Array<ArrayBuffer>, size: Size, drawn: () => void): void
  write(bytes: Uint8Array<ArrayBuffer>, drawn: () => void): void
  resize(size: Size): void
  /** The size that would fill the room there is. */
  room(): Size
}

const CLIENT = randomId() // one writer per page load, as the keeper counts them
const ACK_EVERY = 128 * 1024
const ACK_TIMEOUT = 10_000

export class TerminalLink {
  status: Status = $state('closed')
  closeCode: number | undefined = $state()
  ended: { exitCode: number | null; signal: number | null } | undefined = $state()
  fault: string | undefined = $state()

  readonly #path: string
  readonly #outbox: Outbox
  readonly #position = new Position()
  readonly #connection: Connection
  #screen: Screen | undefined
  #size: Size | undefined // the terminal's, which may be another viewer's
  #acknowledged = 0
  #watchdog: ReturnType<typeof setTimeout> | undefined

  constructor(sessionId: string, workerId: string, outbox: Outbox) {
    this.#path = `/session/${encodeURIComponent(sessionId)}/worker/${encodeURIComponent(workerId)}`
    this.#outbox = outbox
    this.#connection = new Connection({
      address: () => this.#address(),
      opened: () => this.#opened(),
      message: (data) => (typeof data === 'string' ? this.#told(JSON.parse(data)) : this.#output(data)),
      status: (status, closeCode) => this.#became(status, closeCode),
    })
  }

  open(screen: Screen): void {
    this.#screen = screen
    this.#connection.open()
  }

  close(): void {
    this.#connection.close()
    this.#screen = undefined
  }

  nudge(): void {
    this.#connection.nudge()
  }

  type(data: string): void {
    if (this.ended) return
    this.#outbox.push(data)
    this.#flush()
  }

  /** The screen has other room than before: say so (whose size counts is the server's to decide) and fill it. */
  fit(): void {
    if (!this.#screen) return
    this.#send({ type: 'resize', ...this.#screen.room() })
    if (this.#size) this.#screen.resize(this.#size)
  }

  #send(message: object): void {
    this.#connection.send(message)
  }

  #address(): string {
    const { next } = this.#position
    return socketAddress(this.#path, next > 0 ? { after: String(next), client: CLIENT } : { client: CLIENT })
  }

  #opened(): void {
    this.fit()
    this.#outbox.rewind()
    this.#flush()
  }

  #became(status: Status, closeCode?: number): void {
    this.status = status
    this.closeCode = closeCode
    if (status !== 'open') this.#unwatch()
  }

  #flush(): void {
    if (this.status !== 'open') return
    for (const batch of this.#outbox.take()) this.#send({ type: 'input', ...batch })
    this.#watch()
  }

  /** A line that takes keys and never acknowledges is dead, whatever the socket believes. */
  #watch(): void {
    if (!this.#outbox.empty) this.#watchdog ??= setTimeout(() => this.#connection.restart(), ACK_TIMEOUT)
  }

  #unwatch(): void {
    clearTimeout(this.#watchdog)
    this.#watchdog = undefined
  }

  #told(message: TerminalMessage): void {
    switch (message.type) {
      case 'history':
        return this.#restore(message)
      case 'ack':
        this.#outbox.acknowledge(message.n)
        this.#unwatch()
        return this.#watch()
      case 'size':
        this.#size = message
        return this.#screen?.resize(message)
      case 'exit':
        this.ended = message
        return
      case 'error':
        this.fault = message.message
    }
  }

  #restore({ offset, cols, rows, data }: History): void {
    this.#position.next = offset
    this.#acknowledged = 0
    this.#size = { cols, rows }
    this.#screen?.restore(new TextEncoder().encode(data), this.#size, () => this.#drawn(offset))
  }

  #output(frame: ArrayBuffer): void {
    const fresh = this.#position.take(decodeOutput(frame))
    if (fresh === 'hole') return this.#connection.restart()
    const end = this.#position.next
    if (fresh.length > 0) this.#screen?.write(fresh, () => this.#drawn(end))
  }

  /** Acknowledge when the screen has caught up, and now and then while it has not. */
  #drawn(offset: number): void {
    if (offset < this.#position.next && offset - this.#acknowledged < ACK_EVERY) return
    this.#acknowledged = offset
    this.#send({ type: 'ack', offset })
  }
}
