import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { InboxItem } from '../api/types.ts'
import { Notifier } from './notifier.ts'

const item = (id: string, sessionId = 's') => ({ id, sessionId }) as InboxItem
let told: string[] = []
let shown: string | undefined
let notifier: Notifier

beforeEach(() => {
  vi.useFakeTimers()
  told = []
  shown = undefined
  notifier = new Notifier(
    ({ id }) => told.push(id),
    (sessionId) => sessionId === shown,
  )
  notifier.note([item('old')])
})

afterEach(() => vi.useRealTimers())

test('what was there before is no news, and what comes is told after a while', () => {
  notifier.note([item('old'), item('new')])
  vi.advanceTimersByTime(4_900)
  expect(told).toEqual([])
  vi.advanceTimersByTime(200)
  expect(told).toEqual(['new'])
})

test('what was answered meanwhile is not told', () => {
  notifier.note([item('new')])
  notifier.note([])
  vi.advanceTimersByTime(60_000)
  expect(told).toEqual([])
})

test('a session is told of once a minute, and another one all the same', () => {
  notifier.note([item('a'), item('b'), item('c', 'other')])
  vi.advanceTimersByTime(6_000)
  expect(told).toEqual(['a', 'c'])
  vi.advanceTimersByTime(60_000)
  notifier.note([item('d')])
  vi.advanceTimersByTime(6_000)
  expect(told).toEqual(['a', 'c', 'd'])
})

test('nothing is told of the session on the screen', () => {
  shown = 's'
  notifier.note([item('a')])
  vi.advanceTimersByTime(6_000)
  expect(told).toEqual([])
})

test('nothing comes after it was turned off, and turning it on again is a new beginning', () => {
  notifier.note([item('a')])
  notifier.stop()
  notifier.note([item('a'), item('b')])
  vi.advanceTimersByTime(6_000)
  expect(told).toEqual([])
})
