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

test('existing items cause no notification, and new items cause one after a delay', () => {
  notifier.note([item('old'), item('new')])
  vi.advanceTimersByTime(4_900)
  expect(told).toEqual([])
  vi.advanceTimersByTime(200)
  expect(told).toEqual(['new'])
})

test('an item answered within the delay causes no notification', () => {
  notifier.note([item('new')])
  notifier.note([])
  vi.advanceTimersByTime(60_000)
  expect(told).toEqual([])
})

test('each session has at most one notification a minute', () => {
  notifier.note([item('a'), item('b'), item('c', 'other')])
  vi.advanceTimersByTime(6_000)
  expect(told).toEqual(['a', 'c'])
})

test('further items of a session follow one a minute', () => {
  notifier.note([item('a'), item('b'), item('c')])
  vi.advanceTimersByTime(64_900)
  expect(told).toEqual(['a'])
  vi.advanceTimersByTime(200)
  expect(told).toEqual(['a', 'b'])
  vi.advanceTimersByTime(60_000)
  expect(told).toEqual(['a', 'b', 'c'])
})

test('a postponed item that was answered, or whose session is on the screen, causes no notification', () => {
  notifier.note([item('a'), item('b'), item('c')])
  vi.advanceTimersByTime(6_000)
  notifier.note([item('a'), item('c')])
  shown = 's'
  vi.advanceTimersByTime(120_000)
  expect(told).toEqual(['a'])
})

test('permissions always cause a notification, within the minute and on the screen', () => {
  shown = 's'
  notifier.note([permission('a'), permission('b'), item('c')])
  vi.advanceTimersByTime(6_000)
  expect(told).toEqual(['a', 'b'])
})

test('the session on the screen causes no notification', () => {
  shown = 's'
  notifier.note([item('a')])
  vi.advanceTimersByTime(6_000)
  expect(told).toEqual([])
})

test('a stopped notifier shows nothing and starts again with the existing items', () => {
  notifier.note([item('a')])
  notifier.stop()
  notifier.note([item('a'), item('b')])
  vi.advanceTimersByTime(6_000)
  expect(told).toEqual([])
})
