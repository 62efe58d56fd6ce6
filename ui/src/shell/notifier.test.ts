import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { InboxItem } from '../api/types/inbox.ts'
import { Notifier } from './notifier.ts'

const item = (id: string, sessionId = 's', kind = 'question') => ({ id, sessionId, kind }) as InboxItem
const permission = (id: string) => item(id, 's', 'permission')
let notified: string[] = []
let onScreen: string | undefined
let notifier: Notifier

beforeEach(() => {
  vi.useFakeTimers()
  notified = []
  onScreen = undefined
  notifier = new Notifier(
    ({ id }) => notified.push(id),
    (sessionId) => sessionId === onScreen,
  )
  notifier.update([item('old')])
})

afterEach(() => vi.useRealTimers())

test('existing items cause no notification, and new items cause one after a delay', () => {
  notifier.update([item('old'), item('new')])
  vi.advanceTimersByTime(4_900)
  expect(notified).toEqual([])
  vi.advanceTimersByTime(200)
  expect(notified).toEqual(['new'])
})

test('an item answered within the delay causes no notification', () => {
  notifier.update([item('new')])
  notifier.update([])
  vi.advanceTimersByTime(60_000)
  expect(notified).toEqual([])
})

test('each session has at most one notification a minute', () => {
  notifier.update([item('a'), item('b'), item('c', 'other')])
  vi.advanceTimersByTime(6_000)
  expect(notified).toEqual(['a', 'c'])
})

test('further items of a session follow one a minute', () => {
  notifier.update([item('a'), item('b'), item('c')])
  vi.advanceTimersByTime(64_900)
  expect(notified).toEqual(['a'])
  vi.advanceTimersByTime(200)
  expect(notified).toEqual(['a', 'b'])
  vi.advanceTimersByTime(60_000)
  expect(notified).toEqual(['a', 'b', 'c'])
})

test('a postponed item that was answered, or whose session is on the screen, causes no notification', () => {
  notifier.update([item('a'), item('b'), item('c')])
  vi.advanceTimersByTime(6_000)
  notifier.update([item('a'), item('c')])
  onScreen = 's'
  vi.advanceTimersByTime(120_000)
  expect(notified).toEqual(['a'])
})

test('permissions always cause a notification, within the minute and on the screen', () => {
  onScreen = 's'
  notifier.update([permission('a'), permission('b'), item('c')])
  vi.advanceTimersByTime(6_000)
  expect(notified).toEqual(['a', 'b'])
})

test('the session on the screen causes no notification', () => {
  onScreen = 's'
  notifier.update([item('a')])
  vi.advanceTimersByTime(6_000)
  expect(notified).toEqual([])
})

test('a stopped notifier shows nothing and starts again with the existing items', () => {
  notifier.update([item('a')])
  notifier.stop()
  notifier.update([item('a'), item('b')])
  vi.advanceTimersByTime(6_000)
  expect(notified).toEqual([])
})
