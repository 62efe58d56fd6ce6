/**
 * Connect a terminal worker to the screen that shows it: output arrives by offset, input is sent by number, both exactly
 * once over any number of connections and over all runs of the worker.
 */
import { Connection, socketAddress, type Status } from '../api/connection.ts'
import type { History, Size, TerminalMessage } from '../api/terminal-messages.ts'
import { randomId } from '../api/random.ts'
import type { Worker } from '../api/types/workers.ts'
import { OutputRenderer, type Screen } from './output-renderer.ts'
import { InputSender } from './input-sender.ts'
import type { UnacknowledgedInput } from './unacknowledged-input.ts'

const CLIENT = randomId() // each page load is one writer with its own input numbers in the keeper

/** The state of one terminal on this page. */
export class TerminalConnection {
  status: Status = $state('closed')
  closeCode: number | undefined = $state()
  ended: { exitCode: number | null; signal: number | null } | undefined = $state()
  fault: string | undefined = $state()
  /** The size of the terminal if another viewer set it and this page could show another size. Typing sets the size of this page. */
  otherViewerSize: Size | undefined = $state.raw()

  readonly #worker: Pick<Worker, 'id' | 'sessionId'>
  readonly #unacknowledgedInputOf: (run: number) => UnacknowledgedInput
  readonly #connection: Connection
  #run: number
  #input: InputSender
  #renderer: OutputRenderer | undefined

  /** `unacknowledgedInputOf` returns the input of a run: a restarted worker is a new process, whose input is numbered from 1. */
  constructor(worker: Pick<Worker, 'id' | 'sessionId' | 'run'>, unacknowledgedInputOf: (run: number) => UnacknowledgedInput) {
    this.#worker = worker
    this.#unacknowledgedInputOf = unacknowledgedInputOf
    this.#connection = new Connection({
      address: () => this.#address(),
      opened: () => this.#opened(),
      message: (data) => (typeof data === 'string' ? this.#receive(JSON.parse(data)) : this.#draw(data)),
      status: (status, closeCode) => this.#statusChanged(status, closeCode),
    })
    this.#run = worker.run
    this.#input = new InputSender(unacknowledgedInputOf(worker.run), this.#connection)
  }

  /** Connect, and draw the output on this screen. */
  open(screen: Screen): void {
    this.#renderer = new OutputRenderer(screen, (offset) => this.#connection.send({ type: 'ack', offset }))
    this.#connection.open()
  }

  close(): void {
    this.#connection.close()
    this.#renderer = undefined
  }

  retryNow(): void {
    this.#connection.retryNow()
  }

  /** Send input to the program, unless it has ended. */
  type(data: string): void {
    if (!this.ended) this.#input.type(data)
  }

  /** Send the changed size of the screen to the server, and fit the terminal into it. */
  fit(): void {
    if (!this.#renderer) return
    // The server decides which viewer's size is used: that of the viewer used last.
    if (!this.ended) this.#connection.send({ type: 'resize', ...this.#renderer.room })
    this.#renderer.refit()
  }

  /** Make the size of this page the size of the terminal. */
  takeOver(): void {
    if (this.#renderer && !this.ended) this.#connection.send({ type: 'resize', ...this.#renderer.room, take: true })
    this.#renderer?.refit()
  }

  /** Return the address of the socket; it asks for the output after what is already drawn. */
  #address(): string {
    const { id, sessionId } = this.#worker
    const query: Record<string, string> = { format: 'binary', client: CLIENT }
    if (this.#renderer?.next) {
      query.run = String(this.#run)
      query.after = String(this.#renderer.next)
    }
    return socketAddress(`/session/${encodeURIComponent(sessionId)}/worker/${encodeURIComponent(id)}`, query)
  }

  /** Report the size of this screen, and send all unacknowledged input again. */
  #opened(): void {
    this.fit()
    this.#input.resendAll()
  }

  /** Show the status. Without a connection, no acknowledgement of input is awaited. */
  #statusChanged(status: Status, closeCode?: number): void {
    this.status = status
    this.closeCode = closeCode
    if (status !== 'open') this.#input.stopWaiting()
  }

  /** Handle a message of the server; output comes as binary frames, see `#draw`. */
  #receive(message: TerminalMessage): void {
    switch (message.type) {
      case 'history':
        return this.#restore(message)
      case 'ack':
        this.fault = undefined
        return this.#input.acknowledged(message.n)
      case 'size':
        return this.#sizeChanged(message)
      case 'exit':
        this.ended = message
        return this.#input.discard()
      case 'error':
        this.fault = message.message
        if (message.error === 'forbidden') this.#input.discard() // this viewer may not type
        else this.#input.retrySoon()
    }
  }

  /** Give the screen the size of the terminal, and note whether another viewer chose it. */
  #sizeChanged({ cols, rows, owner }: Size & { owner: boolean }): void {
    const room = this.#renderer?.room
    const isOurSize = owner || (room?.cols === cols && room.rows === rows)
    this.otherViewerSize = isOurSize ? undefined : { cols, rows }
    this.#renderer?.resize({ cols, rows })
  }

  /** Draw a frame; if bytes before it are missing, connect again to get them. */
  #draw(frame: ArrayBuffer): void {
    if (this.#renderer?.draw(frame) === false) this.#connection.restart()
  }

  /** Draw the history, which may be that of a new run. */
  #restore(history: History): void {
    if (history.run !== this.#run) this.#beginRun(history.run)
    this.#renderer?.restore(history)
  }

  /** Start a new run after a restart: input is numbered from 1 again, and the process needs the size of this screen. */
  #beginRun(run: number): void {
    this.#run = run
    this.#input.stopWaiting()
    this.#input = new InputSender(this.#unacknowledgedInputOf(run), this.#connection)
    this.ended = this.fault = undefined
    this.fit()
  }
}
