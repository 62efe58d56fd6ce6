import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Session } from '../api/types/sessions.ts'
import { aSession } from '../testing/test-records.ts'
import { Archiving, UNDO_MS } from './archiving.svelte.ts'

const archived: string[] = []
const archive = ({ id }: Session) => void archived.push(id)

beforeEach(() => {
  vi.useFakeTimers()
  archived.length = 0
})
afterEach(() => vi.useRealTimers())

test('a session is archived when the time to undo it is over', () => {
  const archiving = new Archiving(archive)
  archiving.begin(aSession({ id: 'a' }))
  vi.advanceTimersByTime(UNDO_MS - 1)
  expect([archived, archiving.pending?.id]).toEqual([[], 'a'])
  vi.advanceTimersByTime(1)
  expect([archived, archiving.pending]).toEqual([['a'], undefined])
})

test('undo keeps the session', () => {
  const archiving = new Archiving(archive)
  archiving.begin(aSession({ id: 'a' }))
  archiving.undo()
  vi.advanceTimersByTime(UNDO_MS)
  expect([archived, archiving.pending]).toEqual([[], undefined])
})

test('archiving a second session finishes the first', () => {
  const archiving = new Archiving(archive)
  archiving.begin(aSession({ id: 'a' }))
  archiving.begin(aSession({ id: 'b' }))
  expect([archived, archiving.pending?.id]).toEqual([['a'], 'b'])
  vi.advanceTimersByTime(UNDO_MS)
  expect(archived).toEqual(['a', 'b'])
})
