/** A WebSocket for tests, which control when it opens, what it receives and when it closes. */
import { vi } from 'vitest'

export class TestSocket {
  binaryType = 'blob'
  onopen: (() => void) | null = null
  onmessage: ((event: { data: unknown }) => void) | null = null
  onclose: ((event: { code: number }) => void) | null = null
  closed = false
  readonly sent: Record<string, unknown>[] = []

  constructor(readonly address: string) {
    opened.push(this)
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text))
  }

  close(): void {
    this.closed = true
  }

  /** Open the socket. */
  accept(): this {
    this.onopen?.()
    return this
  }

  /** Let the page receive a JSON message. */
  deliver(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) })
  }

  /** Let the page receive a binary frame. */
  output(offset: number, bytes: Uint8Array): void {
    const frame = new Uint8Array(8 + bytes.length)
    new DataView(frame.buffer).setBigUint64(0, BigInt(offset))
    frame.set(bytes, 8)
    this.onmessage?.({ data: frame.buffer })
  }

  /** Close the socket from the server's side. */
  disconnect(code = 1006): void {
    this.onclose?.({ code })
  }

  /** Return the messages of a type that the page sent. */
  sentOfType(type: string): Record<string, unknown>[] {
    return this.sent.filter((message) => message.type === type)
  }
}

let opened: TestSocket[] = []

/** Replace WebSocket; return the list to which each new socket is added. */
export function interceptSockets(): TestSocket[] {
  opened = []
  vi.stubGlobal('WebSocket', TestSocket)
  vi.stubGlobal('location', { protocol: 'http:', host: 'bullpen.test' })
  vi.stubGlobal('localStorage', { getItem: () => 'the-secret' })
  return opened
}
