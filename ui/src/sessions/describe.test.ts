import { expect, test } from 'vitest'
import type { Session, Worker } from '../api/types.ts'
import { age, markOf } from './describe.ts'

function session(status: Session['status'], live: boolean, ...workers: Pick<Worker, 'state' | 'activity'>[]): Session {
  return { status, live, workers } as Session
}

test.each([
  ['✕', session('active', true, { state: 'failed', activity: 'unknown' }, { state: 'active', activity: 'asking' })],
  ['●', session('active', true, { state: 'active', activity: 'active' }, { state: 'active', activity: 'asking' })],
  ['◐', session('active', true, { state: 'active', activity: 'active' })],
  ['○', session('active', true, { state: 'active', activity: 'idle' })],
  ['○', session('active', false, { state: 'exited', activity: 'asking' })],
])('what needs a person most decides the mark %s', (shape, subject) => {
  expect(markOf(subject).shape).toBe(shape)
})

test.each([
  ['idle', session('active', true, { state: 'active', activity: 'idle' })],
  ['not running', session('active', false)],
  ['cancelled', session('cancelled', false)],
])('a quiet session is %s', (label, subject) => {
  expect(markOf(subject).label).toBe(label)
})

test.each([
  ['now', 30],
  ['5 min', 5 * 60],
  ['47 h', 47 * 3600],
  ['2 d', 48 * 3600],
  ['now', -60],
])('%s is how old something of %i seconds is', (text, seconds) => {
  const now = Date.parse('2026-03-01T12:00:00Z')
  expect(age(new Date(now - seconds * 1000).toISOString(), now)).toBe(text)
})
