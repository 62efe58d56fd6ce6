import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { interceptSockets, type TestSocket } from '../testing/sockets.ts'
import { Connection, type Status } from './connection.ts'

let sockets: TestSocket[]
let statuses: Status[]
let connection: Connection

function newConnection(message = () => {}): Connection {
  return new Connection({
    address: () => `ws://bullpen.test/${sockets.length}`,
    opened: () => {},
    message,
    status: (status) => statuses.push(status),
  })
}

beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(Math, 'random').mockReturnValue(1)
  sockets = interceptSockets()
  statuses = []
  connection = newConnection()
})

afterEach(() => {
  connection.close()
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

test('the secret is the first message', () => {
  connection.open()
  sockets[0]?.accept()
  connection.send({ type: 'hello' })
  expect(sockets[0]?.sent).toEqual([{ type: 'auth', secret: 'the-secret' }, { type: 'hello' }])
  expect(statuses).toEqual(['connecting', 'open'])
})

test('a lost connection is tried again after 1, 2 and 4 seconds, each time at a fresh address', () => {
  connection.open()
  for (const pause of [1000, 2000, 4000]) {
    const before = sockets.length
    sockets.at(-1)?.disconnect()
    vi.advanceTimersByTime(pause - 1)
    expect(sockets.length).toBe(before)
    vi.advanceTimersByTime(1)
    expect(sockets.length).toBe(before + 1)
  }
  expect(sockets.at(-1)?.address).toBe('ws://bullpen.test/3')
})

test('the pauses grow when the server accepts and sends nothing', () => {
  connection.open()
  sockets[0]?.accept().disconnect()
  vi.advanceTimersByTime(1000)
  sockets[1]?.accept().disconnect()
  vi.advanceTimersByTime(1999)
  expect(sockets.length).toBe(2)
})

test('a message resets the pause to one second', () => {
  connection.open()
  sockets[0]?.disconnect()
  vi.advanceTimersByTime(1000)
  sockets[1]?.accept().deliver({ type: 'anything' })
  sockets[1]?.disconnect()
  vi.advanceTimersByTime(1000)
  expect(sockets.length).toBe(3)
})

test.each([1008, 4401, 4403, 4404, 4409])('the close code %i is final', (code) => {
  connection.open()
  sockets[0]?.accept().disconnect(code)
  vi.advanceTimersByTime(120_000)
  expect(sockets.length).toBe(1)
  expect(statuses.at(-1)).toBe('closed')
})

test('a viewer that was too slow (4408) connects again', () => {
  connection.open()
  sockets[0]?.accept().disconnect(4408)
  vi.advanceTimersByTime(1000)
  expect(sockets.length).toBe(2)
})

test('a socket that does not open within ten seconds is replaced', () => {
  connection.open()
  vi.advanceTimersByTime(11_000)
  expect(sockets[0]?.closed).toBe(true)
  expect(sockets.length).toBe(2)
})

test('retryNow ends the pause and does nothing to an open connection', () => {
  connection.open()
  sockets[0]?.disconnect()
  connection.retryNow()
  expect(sockets.length).toBe(2)
  sockets[1]?.accept()
  connection.retryNow()
  vi.advanceTimersByTime(39_000)
  expect(sockets.length).toBe(2)
})

test('events of a closed socket are ignored', () => {
  connection.open()
  sockets[0]?.accept()
  connection.close()
  sockets[0]?.disconnect()
  vi.advanceTimersByTime(60_000)
  expect(sockets.length).toBe(1)
  expect(statuses.at(-1)).toBe('closed')
})

test('a connection without a message for 40 seconds is lost', () => {
  connection.open()
  sockets[0]?.accept()
  vi.advanceTimersByTime(39_999)
  expect(statuses).toEqual(['connecting', 'open'])
  vi.advanceTimersByTime(1)
  expect([sockets[0]?.closed, statuses.at(-1)]).toEqual([true, 'waiting'])
  vi.advanceTimersByTime(1000)
  expect(sockets.length).toBe(2)
})

test('any message keeps the connection open', () => {
  connection.open()
  sockets[0]?.accept()
  for (let seconds = 0; seconds < 300; seconds += 30) {
    vi.advanceTimersByTime(30_000)
    sockets[0]?.deliver({ type: 'anything' })
  }
  expect(sockets.length).toBe(1)
})

test('a restart after an invalid message connects again after the pause', () => {
  connection = newConnection(() => connection.restart())
  connection.open()
  sockets[0]?.accept().deliver({ type: 'nonsense' })
  vi.advanceTimersByTime(1000)
  expect(sockets.length).toBe(2)
})

test('the pauses grow when the server accepts and stays silent', () => {
  connection.open()
  for (const pause of [1000, 2000, 4000]) {
    const before = sockets.length
    sockets.at(-1)?.accept()
    vi.advanceTimersByTime(40_000 + pause - 1)
    expect(sockets.length).toBe(before)
    vi.advanceTimersByTime(1)
    expect(sockets.length).toBe(before + 1)
  }
})

/** Move the clock by an hour without running timers, as when a laptop sleeps. */
function sleep(): void {
  vi.setSystemTime(Date.now() + 3_600_000)
}

test('after a sleep retryNow opens one new connection and reports it', () => {
  connection.open()
  sockets[0]?.accept()
  sleep()
  connection.retryNow()
  expect(statuses).toEqual(['connecting', 'open', 'waiting', 'connecting'])
  connection.retryNow()
  sockets[1]?.accept()
  connection.retryNow()
  vi.advanceTimersByTime(39_999)
  expect([sockets.length, sockets[0]?.closed, statuses.at(-1)]).toEqual([2, true, 'open'])
})

test('after a sleep the connection opens once by itself', () => {
  connection.open()
  sockets[0]?.accept()
  sleep()
  vi.advanceTimersByTime(41_000)
  sockets[1]?.accept()
  vi.advanceTimersByTime(39_000)
  expect([sockets.length, statuses.at(-1)]).toEqual([2, 'open'])
})

test('a connection that is back ends the pauses of the other connections', () => {
  const other = newConnection()
  connection.open()
  other.open()
  for (const socket of sockets.slice(0, 2)) socket.disconnect()
  vi.advanceTimersByTime(1000)
  sockets[3]?.disconnect() // now the other connection has the longer pause
  sockets[2]?.accept()
  expect(sockets.length).toBe(4)
  sockets[2]?.deliver({ type: 'anything' })
  expect(sockets.length).toBe(5)
  other.close()
})
