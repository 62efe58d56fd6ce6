import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { InboxItem } from '../api/types/inbox.ts'
import { anItem, aSession, aWorker } from '../testing/test-records.ts'
import type { Session } from '../api/types/sessions.ts'
import { attentionOf, groupSessions, MARKS, type Need } from './attention.ts'

const BEFORE = '2025-12-31T00:00:00.000Z'
const AFTER = '2026-01-02T00:00:00.000Z'

function needOf(worker: Parameters<typeof aWorker>[0], news: InboxItem[] = [], seen = BEFORE): Need {
  return attentionOf(aSession({ workers: [aWorker(worker)] }), news, seen).need
}

interface State {
  about: string
  status: Session['status']
  workers: Parameters<typeof aWorker>[0][]
  unseen: string[]
  sign: string
  word: string
  colour: string
}

const STATES = JSON.parse(readFileSync(new URL('../../../tests/golden/words/states.json', import.meta.url), 'utf8')) as State[]
const COLOURS = { warn: 'amber', bad: 'red', news: 'blue', good: 'green', quiet: 'grey' } as const

test.each(STATES)('a state has the same symbol and label as on the command line: $about', ({ status, workers, unseen, sign, word, colour }) => {
  const news = unseen.map((workerId) => anItem({ workerId }))
  const { mark, label } = attentionOf(aSession({ status, workers: workers.map((worker) => aWorker(worker)) }), news, AFTER)
  expect([MARKS[mark].sign, label, COLOURS[MARKS[mark].tone]]).toEqual([sign, word, colour])
})

test('questions and failed workers need the user, seen or not', () => {
  expect(needOf({ activity: 'asking' }, [], AFTER)).toBe('asking')
  expect(needOf({ state: 'failed', error: 'it crashed' }, [], AFTER)).toBe('error')
})

test('a session that asks shows the texts of its open requests', () => {
  const session = aSession({ workers: [aWorker({ activity: 'asking', activityWhy: 'a question is open' })] })
  expect(attentionOf(session, [], AFTER).why).toBe('a question is open')
  const news = ['Edit a.py', 'Run make'].map((text) => anItem({ kind: 'permission', text, seq: null }))
  expect(attentionOf(session, news, AFTER).why).toBe('Edit a.py · Run make')
})

test('a session waits since its oldest open request', () => {
  const session = aSession({ workers: [aWorker({ activity: 'asking', activitySince: '2026-01-01T00:00:01.000Z' })] })
  const times = ['2026-01-01T00:00:09.000Z', '2026-01-01T00:00:05.000Z']
  const news = times.map((createdAt) => anItem({ kind: 'permission', createdAt, seq: null }))
  expect(attentionOf(session, news, AFTER).since).toBe(times[1])
  expect(attentionOf(session, [], AFTER).since).toBe('2026-01-01T00:00:01.000Z')
})

test('a failure names the worker and the error', () => {
  const session = aSession({ workers: [aWorker({ state: 'failed', error: 'it crashed' })] })
  expect(attentionOf(session, [], AFTER).why).toBe('Agent crashed')
})

test('a finished turn counts as done while it is in the inbox', () => {
  const idle = { activity: 'idle', activityWhy: 'the turn is over' } as const
  expect(needOf(idle, [anItem()])).toBe('done')
  expect(needOf(idle, [anItem({ workerId: 'another' })])).toBe('idle')
  expect(needOf(idle)).toBe('idle')
})

test('an idle terminal agent counts as done until this browser has shown it', () => {
  const idle = { agentKind: 'pty', activity: 'idle', activityWhy: 'its screen shows so' } as const
  expect(needOf(idle)).toBe('done')
  expect(needOf(idle, [], AFTER)).toBe('idle')
})

test('a failed session is an error until it was seen', () => {
  const session = aSession({ status: 'error', workers: [aWorker({ state: 'failed' })] })
  expect(attentionOf(session, [anItem({ kind: 'failed', text: 'it crashed' })], AFTER)).toMatchObject({ need: 'error', why: 'Agent crashed' })
  expect(attentionOf(session, [], BEFORE).need).toBe('idle')
})

test('a failed turn is an error until it was seen, also if its agent runs', () => {
  const session = aSession({ workers: [aWorker({ activity: 'idle', activityWhy: 'the turn failed: overloaded' })] })
  const news = [anItem({ kind: 'failed', text: 'the turn failed: overloaded' })]
  expect(attentionOf(session, news, AFTER)).toMatchObject({ need: 'error', why: 'Agent: the turn failed: overloaded' })
  expect(attentionOf(session, [], AFTER).need).toBe('idle')
})

test('agents without a prompt and idle terminals do not count as done', () => {
  expect(needOf({ activity: 'idle', activityWhy: 'waits for a prompt' })).toBe('idle')
  expect(needOf({ type: 'terminal', activity: 'idle' })).toBe('idle')
})

test('a session is working while one agent works, also if another is done', () => {
  const workers = [aWorker({ id: 'a', activity: 'idle' }), aWorker({ id: 'b', activity: 'active' })]
  expect(attentionOf(aSession({ workers }), [anItem({ workerId: 'a' })], BEFORE).need).toBe('working')
  expect(needOf({ state: 'spawning', activity: 'unknown' })).toBe('working')
})

test('a question of an ended agent does not need the user', () => {
  expect(needOf({ state: 'exited', activity: 'asking' })).toBe('idle')
})

test('an ended session shows how it ended', () => {
  const { need, why } = attentionOf(aSession({ status: 'completed', endReason: 'user_request' }), [], AFTER)
  expect([need, why]).toEqual(['idle', 'ended by a person'])
})

test('sessions are grouped by repository or directory, those that need the user first', () => {
  const needs: Record<string, Need> = { quiet: 'idle', question: 'asking', busy: 'working', loose: 'idle' }
  const sessions = ['quiet', 'busy', 'question'].map((id) => aSession({ id, repoId: 'r' }))
  const loose = aSession({ id: 'loose', locationPath: '/home/me/notes' })
  const inside = aSession({ id: 'inside', locationPath: '/src/atlas', createdAt: BEFORE })
  const groups = groupSessions([loose, inside, ...sessions], [{ id: 'r', name: 'Atlas', path: '/src/atlas' }], ({ id }) => needs[id] ?? 'idle')
  expect(groups.map(({ name, sessions }) => [name, sessions.map(({ id }) => id)])).toEqual([
    ['Atlas', ['question', 'busy', 'quiet', 'inside']],
    ['notes', ['loose']],
  ])
})
