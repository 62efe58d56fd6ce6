/** A WebSocket that logs in with the secret, comes back by itself, and knows when coming back is pointless. */
import { backoff } from './backoff.ts'
import { secret } from './secret.ts'

export type Status = 'connecting' | 'open' | 'waiting' | 'closed'

export interface Peer {
  /** Asked anew for every attempt, so that it can carry where we stand. */
  address(): string
  opened(): void
  message(data: string | ArrayBuffer): void
  status(status: Status, closeCode?: number): void
}

const CONNECT_TIMEOUT = 10_000
// Two heartbeats and some: a network that goes without a word closes nothing for minutes.
const SILENCE = 40_000
// 1008 nonsense, 4401 logged out, 4403 forbidden, 4404 gone, 4409 replaced: the same answer would come again.
const FINAL = new Set([1008, 4401, 4403, 4404, 4409])

/** Connections that wait for their next try. */
const waiting = new Set<Connection>()

export class Connection {
  readonly #peer: Peer
  #socket: WebSocket | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #attempt = 0
  #heardAt = 0
  #status: Status = 'closed'

  constructor(peer: Peer) {
    this.#peer = peer
  }

  open(): void {
    this.#drop()
    this.#become('connecting')
    const socket = new WebSocket(this.#peer.address())
    socket.binaryType = 'arraybuffer'
    socket.onopen = () => this.#opened(socket)
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => this.#received(event.data)
    socket.onclose = (event) => this.#lost(event.code)
    this.#socket = socket
    this.#timer = setTimeout(() => this.#lost(), CONNECT_TIMEOUT)
  }

  get isOpen(): boolean {
    return this.#status === 'open'
  }

  send(message: object): void {
    if (this.isOpen) this.#socket?.send(JSON.stringify(message))
  }

  /** Something in the stream is wrong: drop this socket and come back after a pause. */
  restart(): void {
    this.#lost()
  }

  /** The network or the user is back: do not sit out the pause. */
  nudge(): void {
    if (this.#isSilent) this.#lost()
    if (this.#status === 'waiting') this.open()
  }

  close(): void {
    this.#drop()
    this.#become('closed')
  }

  #opened(socket: WebSocket): void {
    clearTimeout(this.#timer)
    this.#heard()
    socket.send(JSON.stringify({ type: 'auth', secret: secret() }))
    this.#become('open')
    this.#peer.opened()
  }

  #received(data: string | ArrayBuffer): void {
    const isBack = this.#attempt > 0
    this.#attempt = 0 // only now: a server that accepts and closes at once must not be hammered
    this.#heard()
    this.#peer.message(data)
    if (isBack) for (const other of [...waiting]) other.nudge() // the server that answers one answers all
  }

  #heard(): void {
    this.#heardAt = Date.now()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#lost(), SILENCE)
  }

  /** By the clock on the wall: while a device sleeps, no timer runs. */
  get #isSilent(): boolean {
    return this.isOpen && Date.now() - this.#heardAt >= SILENCE
  }

  #lost(code?: number): void {
    this.#drop()
    if (code !== undefined && FINAL.has(code)) return this.#become('closed', code)
    this.#timer = setTimeout(() => this.open(), backoff(this.#attempt++))
    this.#become('waiting', code)
  }

  #drop(): void {
    clearTimeout(this.#timer)
    const socket = this.#socket
    this.#socket = undefined
    if (!socket) return
    socket.onopen = socket.onmessage = socket.onclose = null
    socket.close()
  }

  #become(status: Status, closeCode?: number): void {
    this.#status = status
    if (status === 'waiting') waiting.add(this)
    else waiting.delete(this)
    this.#peer.status(status, closeCode)
  }
}

export function socketAddress(path: string, query: Record<string, string> = {}): string {
  const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:'
  const search = new URLSearchParams(query).toString()
  return `${scheme}//${location.host}/ws${path}${search && `?${search}`}`
}
