import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../api/types/events.ts'
import { Conflict, emptySession, fold, sessionJson, type Snapshot } from './session.ts'

interface GoldenLog {
  story: string
  id: string
  events: SessionEvent[]
  snapshot: object
  page: { queue: object; conversations: object }
}

const GOLDEN = new URL('../../../tests/golden/', import.meta.url)
const files = readdirSync(GOLDEN).filter((name) => name.endsWith('.json'))
const read = (name: string) => JSON.parse(readFileSync(new URL(name, GOLDEN), 'utf8')) as GoldenLog
const foldAll = (log: GoldenLog) => log.events.reduce(fold, emptySession(log.id))

test('there are golden files', () => expect(files.length).toBeGreaterThanOrEqual(12))

describe.each(files)('golden file %s', (name) => {
  const log = read(name)

  test('gives the same session as the server', () => expect(sessionJson(foldAll(log))).toEqual(log.snapshot))

  test('gives the same queue and conversations as the server', () => {
    const { queue, conversations } = foldAll(log)
    expect({ queue, conversations }).toEqual(log.page)
  })
})

const START: SessionEvent = {
  seq: 1,
  type: 'session_start',
  workerId: null,
  role: null,
  timestamp: '2026-03-01T09:30:00.000Z',
  data: { sessionType: 'quick', locationPath: '/', title: 'x' },
}
const after = (...types: [string, string | null, object?][]): Snapshot =>
  types.reduce((session, [type, workerId, data], n) => fold(session, { ...START, seq: n + 2, type, workerId, data: { ...data } }), fold(emptySession('s'), START))

test.each([0, 1, 3])('event %i cannot follow event 1', (seq) => {
  expect(() => fold(fold(emptySession('s'), START), { ...START, seq, type: 'error', data: { message: 'x' } })).toThrow(Conflict)
})

test('an event of an unknown worker is refused', () => expect(() => after(['worker_ready', 'ghost'])).toThrow('no worker ghost'))

test('an invalid state transition is refused', () => {
  expect(() => after(['worker_spawning', 'w', { workerType: 'terminal', name: 'Shell' }], ['worker_exited', 'w'])).toThrow(
    'a worker that is spawning cannot take worker_exited',
  )
})

test('an ended session cannot end again', () => {
  expect(() => after(['session_end', null, { status: 'completed', reason: 'x' }], ['session_end', null, { status: 'error', reason: 'y' }])).toThrow(
    'a session that is completed cannot become error',
  )
})
