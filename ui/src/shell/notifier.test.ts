import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { InboxItem } from '../api/types/inbox.ts'
import { Notifier } from './notifier.ts'

const item = (id: string, sessionId = 's', kind = 'question') => ({ id, sessionId, kind }) as InboxItem
const permission = (id: string) => item(id, 's', 'permission')
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
})

test('what came within the minute is told when it is over, one a minute', () => {
  notifier.note([item('a'), item('b'), item('c')])
  vi.advanceTimersByTime(64_900)
  expect(told).toEqual(['a'])
  vi.advanceTimersByTime(200)
  expect(told).toEqual(['a', 'b'])
  vi.advanceTimersByTime(60_000)
  expect(told).toEqual(['a', 'b', 'c'])
})

test('what was answered within the minute, or is on the screen after it, is not told', () => {
  notifier.note([item('a'), item('b'), item('c')])
  vi.advanceTimersByTime(6_000)
  notifier.note([item('a'), item('c')])
  shown = 's'
  vi.advanceTimersByTime(120_000)
  expect(told).toEqual(['a'])
})

test('permissions are always told, within the minute and on the screen', () => {
  shown = 's'
  notifier.note([permission('a'), permission('b'), item('c')])
  vi.advanceTimersByTime(6_000)
  expect(told).toEqual(['a', 'b'])
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
