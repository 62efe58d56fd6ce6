import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { interceptSockets, type TestSocket } from '../testing/sockets.ts'
import { SessionPresence } from './presence.ts'

let sockets: TestSocket[]
let presence: SessionPresence

beforeEach(() => {
  vi.useFakeTimers()
  sockets = interceptSockets()
  setVisibility('visible')
  presence = new SessionPresence('s1')
  presence.open()
})

afterEach(() => {
  presence.close()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

function setVisibility(visibilityState: DocumentVisibilityState): void {
  vi.stubGlobal('document', { visibilityState })
}

function sentVisibility(socket: TestSocket | undefined): unknown[] {
  return (socket?.sentOfType('looking') ?? []).map(({ visible }) => visible)
}

test('the visibility is sent on connecting and when it changes', () => {
  sockets[0]?.accept()
  expect(sockets[0]?.address).toBe('ws://bullpen.test/ws/session/s1')
  setVisibility('hidden')
  presence.visibilityChanged()
  setVisibility('visible')
  presence.visibilityChanged()
  expect(sentVisibility(sockets[0])).toEqual([true, false, true])
})

test('a hidden page sends that it is hidden, and each new connection sends the visibility', () => {
  setVisibility('hidden')
  sockets[0]?.accept().disconnect()
  expect(sentVisibility(sockets[0])).toEqual([false])
  setVisibility('visible')
  presence.visibilityChanged()
  sockets[1]?.accept()
  expect(sentVisibility(sockets[1])).toEqual([true])
})

test('the connection is closed when the session is no longer shown', () => {
  sockets[0]?.accept()
  presence.close()
  expect(sockets[0]?.closed).toBe(true)
})
