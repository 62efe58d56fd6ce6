import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { interceptSockets, type TestSocket } from '../testing/sockets.ts'
import { Look } from './look.ts'

let sockets: TestSocket[]
let look: Look

beforeEach(() => {
  vi.useFakeTimers()
  sockets = interceptSockets()
  seen('visible')
  look = new Look('s1')
  look.open()
})

afterEach(() => {
  look.close()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

function seen(visibilityState: DocumentVisibilityState): void {
  vi.stubGlobal('document', { visibilityState })
}

function said(socket: TestSocket | undefined): unknown[] {
  return (socket?.heard('looking') ?? []).map(({ visible }) => visible)
}

test('the visibility is sent on connecting and when it changes', () => {
  sockets[0]?.accept()
  expect(sockets[0]?.address).toBe('ws://bullpen.test/ws/session/s1')
  seen('hidden')
  look.changed()
  seen('visible')
  look.changed()
  expect(said(sockets[0])).toEqual([true, false, true])
})

test('a hidden page sends that it is hidden, and each new connection sends the visibility', () => {
  seen('hidden')
  sockets[0]?.accept().die()
  expect(said(sockets[0])).toEqual([false])
  seen('visible')
  look.changed()
  sockets[1]?.accept()
  expect(said(sockets[1])).toEqual([true])
})

test('the connection is closed when the session is no longer shown', () => {
  sockets[0]?.accept()
  look.close()
  expect(sockets[0]?.closed).toBe(true)
})
