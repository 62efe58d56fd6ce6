import { expect, test } from 'vitest'
import { aSession, aWorker } from '../testing/things.ts'
import { attentionOf, groupSessions, type Need } from './attention.ts'

const BEFORE = '2025-12-31T00:00:00.000Z'
const AFTER = '2026-01-02T00:00:00.000Z'

function needOf(worker: Parameters<typeof aWorker>[0], seen = BEFORE): Need {
  return attentionOf(aSession({ workers: [aWorker(worker)] }), seen).need
}

test('a question and a failure need a person, seen or not', () => {
  expect(needOf({ activity: 'asking' }, AFTER)).toBe('asking')
  expect(needOf({ state: 'failed', error: 'it crashed' }, AFTER)).toBe('error')
})

test('a failure says what went wrong', () => {
  const session = aSession({ workers: [aWorker({ state: 'failed', error: 'it crashed' })] })
  expect(attentionOf(session, AFTER).why).toBe('it crashed')
})

test('what an agent finished is news until it was on the screen', () => {
  expect(needOf({ activity: 'idle', activityWhy: 'the turn is over' })).toBe('done')
  expect(needOf({ activity: 'idle', activityWhy: 'the turn is over' }, AFTER)).toBe('idle')
})

test('an agent that was asked nothing, and a terminal at rest, are no news', () => {
  expect(needOf({ activity: 'idle', activityWhy: 'waits for a prompt' })).toBe('idle')
  expect(needOf({ type: 'terminal', activity: 'idle' })).toBe('idle')
})

test('while one agent works, what another finished can wait', () => {
  const workers = [aWorker({ id: 'a', activity: 'idle' }), aWorker({ id: 'b', activity: 'active' })]
  expect(attentionOf(aSession({ workers }), BEFORE).need).toBe('working')
  expect(needOf({ state: 'spawning', activity: 'unknown' })).toBe('working')
})

test('a question of an agent that is gone is asked of nobody', () => {
  expect(needOf({ state: 'exited', activity: 'asking' })).toBe('idle')
})

test('a session that ended says how', () => {
  const { need, why } = attentionOf(aSession({ status: 'completed', endReason: 'user_request' }), AFTER)
  expect([need, why]).toEqual(['idle', 'user request'])
})

test('groups are repositories or directories, and within them what needs a person comes first', () => {
  const needs: Record<string, Need> = { quiet: 'idle', question: 'asking', busy: 'working', loose: 'idle' }
  const sessions = ['quiet', 'busy', 'question'].map((id) => aSession({ id, repoId: 'r' }))
  const loose = aSession({ id: 'loose', locationPath: '/home/me/notes' })
  const groups = groupSessions([loose, ...sessions], [{ id: 'r', name: 'Atlas', path: '/src/atlas' }], ({ id }) => needs[id] ?? 'idle')
  expect(groups.map(({ name, sessions }) => [name, sessions.map(({ id }) => id)])).toEqual([
    ['Atlas', ['question', 'busy', 'quiet']],
    ['notes', ['loose']],
  ])
})
