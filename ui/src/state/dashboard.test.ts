import { expect, test } from 'vitest'
import type { Session } from '../api/types/sessions.ts'
import { aSession } from '../testing/test-records.ts'
import { fold } from './dashboard.ts'

const old = aSession({ id: 'old', createdAt: '2026-01-01T00:00:00.000Z' })
const young = aSession({ id: 'young', createdAt: '2026-02-01T00:00:00.000Z' })

test('the list is newest first', () => {
  expect(fold([], { type: 'sessions', sessions: [old, young] })).toEqual([young, old])
})

test('a changed session replaces its earlier version', () => {
  const ended: Session = { ...old, status: 'cancelled' }
  expect(fold([young, old], { type: 'session', session: ended })).toEqual([young, ended])
})

test('a new session is added to the list', () => {
  expect(fold([old], { type: 'session', session: young })).toEqual([young, old])
})

test('a removed session leaves the list', () => {
  expect(fold([young, old], { type: 'removed', sessionId: 'old' })).toEqual([young])
})
