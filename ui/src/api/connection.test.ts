import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { interceptSockets, type TestSocket } from '../testing/sockets.ts'
import { Connection, type Status } from './connection.ts'

let sockets: TestSocket[]
let statuses: Status[]
let connection: Connection

beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(Math, 'random').mockReturnValue(1)
  sockets = interceptSockets()
  statuses = []
  connection = new Connection({
    address: () => `ws://bullpen.test/${sockets.length}`,
    opened: () => {},
    message: () => {},
    status: (status) => statuses.push(status),
  })
})

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

test('the secret is the first thing said', () => {
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
    sockets.at(-1)?.die()
    vi.advanceTimersByTime(pause - 1)
    expect(sockets.length).toBe(before)
    vi.advanceTimersByTime(1)
    expect(sockets.length).toBe(before + 1)
  }
  expect(sockets.at(-1)?.address).toBe('ws://bullpen.test/3')
})

test('a server that accepts and says nothing is not hammered', () => {
  connection.open()
  sockets[0]?.accept().die()
  vi.advanceTimersByTime(1000)
  sockets[1]?.accept().die()
  vi.advanceTimersByTime(1999)
  expect(sockets.length).toBe(2)
})

test('after a message the pauses start small again', () => {
  connection.open()
  sockets[0]?.die()
  vi.advanceTimersByTime(1000)
  sockets[1]?.accept().tell({ type: 'anything' })
  sockets[1]?.die()
  vi.advanceTimersByTime(1000)
  expect(sockets.length).toBe(3)
})

test.each([1008, 4401, 4403, 4404, 4409])('after %i there is no use in trying again', (code) => {
  connection.open()
  sockets[0]?.accept().die(code)
  vi.advanceTimersByTime(120_000)
  expect(sockets.length).toBe(1)
  expect(statuses.at(-1)).toBe('closed')
})

test('too slow (4408) is worth another try', () => {
  connection.open()
  sockets[0]?.accept().die(4408)
  vi.advanceTimersByTime(1000)
  expect(sockets.length).toBe(2)
})

test('a socket that never opens is given up after ten seconds', () => {
  connection.open()
  vi.advanceTimersByTime(11_000)
  expect(sockets[0]?.closed).toBe(true)
  expect(sockets.length).toBe(2)
})

test('a nudge ends the pause and does nothing to an open connection', () => {
  connection.open()
  sockets[0]?.die()
  connection.nudge()
  expect(sockets.length).toBe(2)
  sockets[1]?.accept()
  connection.nudge()
  vi.advanceTimersByTime(60_000)
  expect(sockets.length).toBe(2)
})

test('a dropped socket is no longer listened to', () => {
  connection.open()
  sockets[0]?.accept()
  connection.close()
  sockets[0]?.die()
  vi.advanceTimersByTime(60_000)
  expect(sockets.length).toBe(1)
  expect(statuses.at(-1)).toBe('closed')
})
