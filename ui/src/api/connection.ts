/** A WebSocket that authenticates with the secret, reconnects by itself, and stops after a final close code. */
import { backoff } from './backoff.ts'
import { secret } from './credentials.ts'

export type Status = 'connecting' | 'open' | 'waiting' | 'closed'

/** What the owner of a connection provides. */
export interface ConnectionHandlers {
  /** Return the address for the next attempt. Called for each attempt, so the address can contain the current position. */
  address(): string
  opened(): void
  message(data: string | ArrayBuffer): void
  status(status: Status, closeCode?: number): void
}

const CONNECT_TIMEOUT_MS = 10_000
// More than two heartbeats. A network that fails silently closes no socket for minutes.
const SILENCE_TIMEOUT_MS = 40_000
// 1008 invalid message, 4401 logged out, 4403 forbidden, 4404 not found, 4409 replaced: another attempt would end the same way.
const FINAL_CLOSE_CODES = new Set([1008, 4401, 4403, 4404, 4409])

/** Connections that wait for their next attempt. */
const waiting = new Set<Connection>()

/** One logical connection over any number of WebSockets; used for the dashboard, sessions and terminals. */
export class Connection {
  readonly #handlers: ConnectionHandlers
  #socket: WebSocket | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #attempt = 0
  #activeAt = 0
  #status: Status = 'closed'

  constructor(handlers: ConnectionHandlers) {
    this.#handlers = handlers
  }

  open(): void {
    this.#closeSocket()
    this.#setStatus('connecting')
    const socket = new WebSocket(this.#handlers.address())
    socket.binaryType = 'arraybuffer'
    socket.onopen = () => this.#opened(socket)
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => this.#received(event.data)
    socket.onclose = (event) => this.#lost(event.code)
    this.#socket = socket
    this.#timer = setTimeout(() => this.#lost(), CONNECT_TIMEOUT_MS)
  }

  get isOpen(): boolean {
    return this.#status === 'open'
  }

  /** Send a message as JSON; without an open socket it is dropped. */
  send(message: object): void {
    if (this.isOpen) this.#socket?.send(JSON.stringify(message))
  }

  /** Close this socket, whose stream is invalid, and connect again after a pause. */
  restart(): void {
    this.#lost()
  }

  /** Connect now instead of after the pause, because the network or the user is back. Replaces a socket that is silent. */
  retryNow(): void {
    if (this.#isSilent) this.#lost()
    if (this.#status === 'waiting') this.open()
  }

  close(): void {
    this.#closeSocket()
    this.#setStatus('closed')
  }

  /** Authenticate the page on the new socket, then report that it is open. */
  #opened(socket: WebSocket): void {
    clearTimeout(this.#timer)
    this.#noteActivity()
    socket.send(JSON.stringify({ type: 'auth', secret: secret() }))
    this.#setStatus('open')
    this.#handlers.opened()
  }

  /** Pass on a message. The first one after a loss shows that the server is back, so other waiting connections try at once. */
  #received(data: string | ArrayBuffer): void {
    const isBack = this.#attempt > 0
    this.#attempt = 0 // not in #opened: the pauses must grow if a server accepts and closes immediately
    this.#noteActivity()
    this.#handlers.message(data)
    if (isBack) for (const other of [...waiting]) other.retryNow() // the server is back for all connections
  }

  /** Restart the silence timeout. */
  #noteActivity(): void {
    this.#activeAt = Date.now()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#lost(), SILENCE_TIMEOUT_MS)
  }

  /** Whether the silence timeout has passed by the clock; timers do not run while a device sleeps. */
  get #isSilent(): boolean {
    return this.isOpen && Date.now() - this.#activeAt >= SILENCE_TIMEOUT_MS
  }

  /** Close the socket and reconnect after a pause, unless the close code is final. */
  #lost(code?: number): void {
    this.#closeSocket()
    if (code !== undefined && FINAL_CLOSE_CODES.has(code)) return this.#setStatus('closed', code)
    this.#timer = setTimeout(() => this.open(), backoff(this.#attempt++))
    this.#setStatus('waiting', code)
  }

  #closeSocket(): void {
    clearTimeout(this.#timer)
    const socket = this.#socket
    this.#socket = undefined
    if (!socket) return
    socket.onopen = socket.onmessage = socket.onclose = null
    socket.close()
  }

  /** Set and report the status; waiting connections are kept in a list, so that one that succeeds can wake the others. */
  #setStatus(status: Status, closeCode?: number): void {
    this.#status = status
    if (status === 'waiting') waiting.add(this)
    else waiting.delete(this)
    this.#handlers.status(status, closeCode)
  }
}

/** Return the WebSocket address of a path on this server. */
export function socketAddress(path: string, query: Record<string, string> = {}): string {
  const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:'
  const search = new URLSearchParams(query).toString()
  return `${scheme}//${location.host}/ws${path}${search && `?${search}`}`
}
