/**
 * Connect a terminal worker to the screen that shows it: output arrives by offset, input is sent by number, both exactly
 * once over any number of connections and over all runs of the worker.
 */
import { Connection, socketAddress, type Status } from '../api/connection.ts'
import type { History, Size, TerminalMessage } from '../api/frames.ts'
import { randomId } from '../api/random.ts'
import type { Worker } from '../api/types/workers.ts'
import { Drawing, type Screen } from './drawing.ts'
import { Keyboard } from './keyboard.ts'
import type { Outbox } from './outbox.ts'

const CLIENT = randomId() // each page load is one writer with its own input numbers in the keeper

/** The state of one terminal on this page. */
export class TerminalLink {
  status: Status = $state('closed')
  closeCode: number | undefined = $state()
  ended: { exitCode: number | null; signal: number | null } | undefined = $state()
  fault: string | undefined = $state()
  /** The size of the terminal if another viewer set it and it differs from ours; typing takes it over. */
  foreignSize: Size | undefined = $state.raw()

  readonly #worker: Pick<Worker, 'id' | 'sessionId'>
  readonly #outboxOf: (run: number) => Outbox
  readonly #connection: Connection
  #run: number
  #keyboard: Keyboard
  #drawing: Drawing | undefined

  /** `outboxOf` returns the outbox of a run: a restarted worker is a new process, whose input is numbered from 1. */
  constructor(worker: Pick<Worker, 'id' | 'sessionId' | 'run'>, outboxOf: (run: number) => Outbox) {
    this.#worker = worker
    this.#outboxOf = outboxOf
    this.#connection = new Connection({
      address: () => this.#address(),
      opened: () => this.#opened(),
      message: (data) => (typeof data === 'string' ? this.#told(JSON.parse(data)) : this.#output(data)),
      status: (status, closeCode) => this.#became(status, closeCode),
    })
    this.#run = worker.run
    this.#keyboard = new Keyboard(outboxOf(worker.run), this.#connection)
  }

  open(screen: Screen): void {
    this.#drawing = new Drawing(screen, (offset) => this.#connection.send({ type: 'ack', offset }))
    this.#connection.open()
  }

  close(): void {
    this.#connection.close()
    this.#drawing = undefined
  }

  nudge(): void {
    this.#connection.nudge()
  }

  type(data: string): void {
    if (!this.ended) this.#keyboard.type(data)
  }

  /** Send the changed size of the screen to the server, and fit the terminal into it. */
  fit(): void {
    if (!this.#drawing) return
    // The server decides which viewer's size is used: that of the viewer used last.
    if (!this.ended) this.#connection.send({ type: 'resize', ...this.#drawing.room })
    this.#drawing.refit()
  }

  /** Make the size of this page the size of the terminal. */
  takeOver(): void {
    if (this.#drawing && !this.ended) this.#connection.send({ type: 'resize', ...this.#drawing.room, take: true })
    this.#drawing?.refit()
  }

  #address(): string {
    const { id, sessionId } = this.#worker
    const query: Record<string, string> = { client: CLIENT }
    if (this.#drawing?.next) {
      query.run = String(this.#run)
      query.after = String(this.#drawing.next)
    }
    return socketAddress(`/session/${encodeURIComponent(sessionId)}/worker/${encodeURIComponent(id)}`, query)
  }

  #opened(): void {
    this.fit()
    this.#keyboard.resume()
  }

  #became(status: Status, closeCode?: number): void {
    this.status = status
    this.closeCode = closeCode
    if (status !== 'open') this.#keyboard.rest()
  }

  #told(message: TerminalMessage): void {
    switch (message.type) {
      case 'history':
        return this.#restore(message)
      case 'ack':
        this.fault = undefined
        return this.#keyboard.taken(message.n)
      case 'size':
        return this.#resized(message)
      case 'exit':
        this.ended = message
        return this.#keyboard.discard()
      case 'error':
        this.fault = message.message
        if (message.error === 'forbidden') this.#keyboard.discard() // this viewer may not type
        else this.#keyboard.refused()
    }
  }

  #resized({ cols, rows, owner }: Size & { owner: boolean }): void {
    const room = this.#drawing?.room
    const suits = owner || (room?.cols === cols && room.rows === rows)
    this.foreignSize = suits ? undefined : { cols, rows }
    this.#drawing?.resize({ cols, rows })
  }

  #output(frame: ArrayBuffer): void {
    if (this.#drawing?.draw(frame) === false) this.#connection.restart()
  }

  #restore(history: History): void {
    if (history.run !== this.#run) this.#begin(history.run)
    this.#drawing?.restore(history)
  }

  /** Start a new run after a restart: input is numbered from 1 again, and the process needs the size of this screen. */
  #begin(run: number): void {
    this.#run = run
    this.#keyboard.rest()
    this.#keyboard = new Keyboard(this.#outboxOf(run), this.#connection)
    this.ended = this.fault = undefined
    this.fit()
  }
}
