import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { interceptSockets, type TestSocket } from '../testing/sockets.ts'
import type { Screen } from './output-renderer.ts'
import { TerminalConnection } from './terminal-connection.svelte.ts'
import { UnacknowledgedInput } from './unacknowledged-input.ts'

const encode = (text: string) => new TextEncoder().encode(text)
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

/** A screen that draws into a string; drawing finishes only when the test calls `finishDrawing`. */
class TextScreen implements Screen {
  text = ''
  size = { cols: 0, rows: 0 }
  #drawn: (() => void)[] = []

  restore(history: Uint8Array, size: { cols: number; rows: number }, drawn: () => void): void {
    this.text = ''
    this.size = size
    this.write(history, drawn)
  }
  write(bytes: Uint8Array, drawn: () => void): void {
    this.text += decode(bytes)
    this.#drawn.push(drawn)
  }
  resize({ cols, rows }: { cols: number; rows: number }): void {
    this.size = { cols, rows }
  }
  room(): { cols: number; rows: number } {
    return { cols: 100, rows: 30 }
  }
  finishDrawing(): void {
    for (const drawn of this.#drawn.splice(0)) drawn()
  }
}

let sockets: TestSocket[]
let screen: TextScreen
let connection: TerminalConnection
let inputByRun: UnacknowledgedInput[]

beforeEach(() => {
  vi.useFakeTimers()
  sockets = interceptSockets()
  screen = new TextScreen()
  inputByRun = [new UnacknowledgedInput(), new UnacknowledgedInput(), new UnacknowledgedInput()]
  connection = new TerminalConnection({ id: 'w1', sessionId: 's1', run: 1 }, (run) => inputByRun[run] as UnacknowledgedInput)
  connection.open(screen)
})

afterEach(() => {
  connection.close()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

/** Accept the newest socket and return it. */
const acceptNewest = () => (sockets.at(-1) as TestSocket).accept()

function acceptWithHistory(data: string, offset: number): TestSocket {
  const socket = acceptNewest()
  socket.deliver({ type: 'history', run: 1, offset, cols: 80, rows: 24, data })
  return socket
}

function reconnect(socket: TestSocket): void {
  socket.disconnect()
  vi.advanceTimersToNextTimer() // the pause before the next attempt
}

const query = () => Object.fromEntries(new URL((sockets.at(-1) as TestSocket).address).searchParams)

test('the first connection requests the history with its own client id', () => {
  expect((sockets[0] as TestSocket).address).toMatch(/^ws:\/\/bullpen\.test\/ws\/session\/s1\/worker\/w1\?format=binary&client=[0-9a-f]{32}$/)
  acceptWithHistory('$ ', 40)
  expect(screen.text).toBe('$ ')
  expect(screen.size).toEqual({ cols: 80, rows: 24 })
})

test('the next connection continues after the last byte with the same client id', () => {
  const { client } = query()
  const socket = acceptWithHistory('$ ', 40)
  socket.output(40, encode('ls\n'))
  reconnect(socket)
  expect(query()).toEqual({ format: 'binary', after: '43', run: '1', client })
})

test('bytes repeated after a reconnect are drawn once', () => {
  const socket = acceptWithHistory('', 40)
  socket.output(40, encode('one '))
  reconnect(socket)
  acceptNewest().output(40, encode('one two'))
  expect(screen.text).toBe('one two')
})

test('missing bytes cause a new connection that requests them', () => {
  const socket = acceptWithHistory('', 40)
  socket.output(50, encode('later'))
  expect(socket.closed).toBe(true)
  expect(screen.text).toBe('')
  vi.advanceTimersToNextTimer() // the pause before the next attempt
  expect(query().after).toBe('40')
})

test('a new history replaces the screen and the position', () => {
  const socket = acceptWithHistory('old', 40)
  socket.deliver({ type: 'history', run: 1, offset: 9000, cols: 120, rows: 40, data: 'new' })
  socket.output(9000, encode('er'))
  expect(screen.text).toBe('newer')
})

test('bytes are acknowledged when they are drawn, not when they arrive', () => {
  const socket = acceptWithHistory('', 40)
  socket.output(40, encode('abc'))
  expect(socket.sentOfType('ack')).toEqual([])
  screen.finishDrawing()
  expect(socket.sentOfType('ack')).toEqual([{ type: 'ack', offset: 43 }])
})

test('a large amount of output is acknowledged in steps', () => {
  const socket = acceptWithHistory('', 0)
  screen.finishDrawing()
  const step = new Uint8Array(64 * 1024).fill(0x61)
  for (let i = 0; i < 8; i++) socket.output(i * step.length, step)
  screen.finishDrawing()
  expect(socket.sentOfType('ack').map((ack) => ack.offset)).toEqual([0, 131072, 262144, 393216, 524288])
})

test('input is numbered and sent again unchanged until it is acknowledged', () => {
  const socket = acceptWithHistory('', 0)
  connection.type('a')
  connection.type('b')
  socket.deliver({ type: 'ack', n: 1 })
  reconnect(socket)
  connection.type('c')
  expect(acceptNewest().sentOfType('input')).toEqual([
    { type: 'input', n: 2, data: 'b' },
    { type: 'input', n: 3, data: 'c' },
  ])
})

test('a connection that does not acknowledge input is replaced', () => {
  const socket = acceptWithHistory('', 0)
  connection.type('a')
  vi.advanceTimersByTime(5000)
  connection.type('b')
  vi.advanceTimersByTime(5000)
  expect(socket.closed).toBe(true)
  expect(connection.status).toBe('waiting')
})

test('a connection that acknowledges input is kept', () => {
  const socket = acceptWithHistory('', 0)
  connection.type('a')
  socket.deliver({ type: 'ack', n: 1 })
  vi.advanceTimersByTime(39_000)
  expect(socket.closed).toBe(false)
})

test('the available size is sent on each connection, and the drawn size is the one from the server', () => {
  const socket = acceptWithHistory('', 0)
  expect(socket.sentOfType('resize')).toEqual([{ type: 'resize', cols: 100, rows: 30 }])
  expect(screen.size).toEqual({ cols: 80, rows: 24 })
  socket.deliver({ type: 'size', cols: 100, rows: 30, owner: true })
  expect(screen.size).toEqual({ cols: 100, rows: 30 })
})

test("another viewer's size is drawn and shown, and can be taken over", () => {
  const socket = acceptWithHistory('', 0)
  socket.deliver({ type: 'size', cols: 40, rows: 20, owner: false })
  expect(screen.size).toEqual({ cols: 40, rows: 20 })
  expect(connection.otherViewerSize).toEqual({ cols: 40, rows: 20 })
  connection.takeOver()
  expect(socket.sentOfType('resize').at(-1)).toEqual({ type: 'resize', cols: 100, rows: 30, take: true })
  socket.deliver({ type: 'size', cols: 100, rows: 30, owner: true })
  expect(connection.otherViewerSize).toBeUndefined()
})

test("another viewer's size that equals ours is not shown", () => {
  acceptWithHistory('', 0).deliver({ type: 'size', cols: 100, rows: 30, owner: false })
  expect(connection.otherViewerSize).toBeUndefined()
})

test('no input is sent to an ended program', () => {
  const socket = acceptWithHistory('', 0)
  socket.deliver({ type: 'exit', exitCode: 3, signal: null })
  connection.type('a')
  expect(socket.sentOfType('input')).toEqual([])
  expect(connection.ended).toMatchObject({ exitCode: 3 })
})

test('after a restart input is numbered from one again and the size is sent', () => {
  const socket = acceptWithHistory('', 0)
  connection.type('a')
  socket.deliver({ type: 'ack', n: 1 })
  socket.deliver({ type: 'exit', exitCode: 0, signal: null })
  socket.deliver({ type: 'history', run: 2, offset: 0, cols: 80, rows: 24, data: '' })
  connection.type('b')
  expect(socket.sentOfType('input').at(-1)).toEqual({ type: 'input', n: 1, data: 'b' })
  expect(socket.sentOfType('resize').length).toBe(2)
  expect(connection.ended).toBeUndefined()
})

test('input that is refused while the program starts is sent again', () => {
  const socket = acceptWithHistory('', 0)
  connection.type('a')
  socket.deliver({ type: 'error', error: 'conflict', message: 'the terminal is being started' })
  vi.advanceTimersByTime(500)
  expect(socket.sentOfType('input')).toEqual([
    { type: 'input', n: 1, data: 'a' },
    { type: 'input', n: 1, data: 'a' },
  ])
  socket.deliver({ type: 'ack', n: 1 })
  expect(connection.fault).toBeUndefined()
})

test('no size is sent to an ended program', () => {
  const socket = acceptWithHistory('', 0)
  socket.deliver({ type: 'exit', exitCode: 0, signal: null })
  connection.fit()
  expect(socket.sentOfType('resize').length).toBe(1)
})

test('a viewer that may not type sees the reason and stays connected', () => {
  const socket = acceptWithHistory('', 0)
  connection.type('a')
  socket.deliver({ type: 'error', error: 'forbidden', message: 'looking is allowed, typing is not' })
  vi.advanceTimersByTime(39_000)
  expect(connection.fault).toBe('looking is allowed, typing is not')
  expect(socket.closed).toBe(false)
})

/** A program with recorded output that accepts input by number, as the keeper does. */
class TestProgram {
  readonly printed = encode(Array.from({ length: 4000 }, (_, i) => `line ${i}\n`).join(''))
  read = ''
  #last = 0

  take({ n, data }: { n: number; data: string }): number {
    if (n > this.#last + 1) throw new Error(`batch ${n} after ${this.#last}: one is missing`)
    if (n > this.#last) {
      this.read += data
      this.#last = n
    }
    return n
  }
}

test('over two hundred lost connections every byte is drawn once and every key arrives once, in order', () => {
  const random = randomNumbers(7)
  const program = new TestProgram()
  let keys = ''
  const type = (key: string) => {
    keys += key
    connection.type(key)
  }
  for (let cut = 0; cut <= 200; cut++) {
    const socket = acceptNewest()
    const after = Number(query().after ?? 0)
    let sent = Math.max(0, after - Math.floor(random() * 20)) // an overlap, as after a crash
    if (cut === 0) socket.deliver({ type: 'history', run: 1, offset: 0, cols: 80, rows: 24, data: '' })
    const rounds = cut === 200 ? 4000 : Math.floor(random() * 6)
    for (let round = 0; round < rounds; round++) {
      const end = Math.min(sent + 1 + Math.floor(random() * 200), program.printed.length)
      socket.output(sent, program.printed.subarray(sent, end))
      sent = end
      if (round < 5) type(`key ${cut}.${round};`)
      const lost = cut < 200 && round === rounds - 1 && random() < 0.5 // sent, but the server was dead by then
      const received = lost ? [] : (socket.sentOfType('input') as { n: number; data: string }[])
      const acknowledged = Math.max(0, ...received.map((batch) => program.take(batch)))
      if (acknowledged > 0 && random() < 0.7) socket.deliver({ type: 'ack', n: acknowledged })
      screen.finishDrawing()
    }
    if (cut === 200) break
    socket.disconnect()
    if (random() < 0.5) type(`key ${cut}.offline;`)
    vi.advanceTimersToNextTimer() // the pause before the next attempt
  }
  expect(screen.text).toBe(decode(program.printed))
  expect(program.read).toBe(keys)
})

/** Return a function with pseudo-random results from 0 to 1, the same for the same start. */
function randomNumbers(start: number): () => number {
  return () => (start = (start * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff
}
