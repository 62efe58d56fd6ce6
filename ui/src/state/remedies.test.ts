import { expect, test } from 'vitest'
import { ApiError } from '../api/http.ts'
import { aSession, aWorker } from '../testing/test-records.ts'
import { idleLongest, remedyFor, requireAllowed } from './remedies.ts'

const session = (id: string, ...workers: Parameters<typeof aWorker>[0][]) => aSession({ id, title: id, workers: workers.map(aWorker) })
const at = (minute: number) => `2026-01-01T00:0${minute}:00.000Z`

test('the session whose agents are all idle, and for the longest time, is offered to be archived', () => {
  const sessions = [
    session('working', { activity: 'active', activitySince: at(0) }),
    session('half idle', { activity: 'idle', activitySince: at(0) }, { activity: 'asking', activitySince: at(0) }),
    session('idle later', { activity: 'idle', activitySince: at(3) }),
    session('idle', { activity: 'idle', activitySince: at(1) }, { activity: 'idle', activitySince: at(2) }, { state: 'failed', activitySince: at(9) }),
    session('only a terminal', { type: 'terminal', activity: 'idle', activitySince: at(0) }),
  ]
  expect(idleLongest(sessions)).toMatchObject({ session: { id: 'idle' }, since: at(2) })
  expect(idleLongest(sessions.slice(0, 2))).toBeUndefined()
})

test('a refusal has a remedy if a directory can be allowed or an idle session can be archived', () => {
  const idle = [session('idle', { activity: 'idle', activitySince: at(1) })]
  const limit = new ApiError(429, 'too_many', 'the limit is reached', { limit: 1, setting: 'max_sessions' })
  expect(remedyFor(limit, idle)?.question).toMatchObject({ label: 'Archive “idle”' })
  expect(remedyFor(limit, [])).toBeUndefined()
  expect(remedyFor(new ApiError(403, 'forbidden', 'no', { allowRoot: '/srv/app' }), [])?.question.title).toBe('Allow sessions in /srv/app?')
  expect(remedyFor(new ApiError(409, 'conflict', 'no'), idle)).toBeUndefined()
  expect(remedyFor(new TypeError('a defect'), idle)).toBeUndefined()
})

test('an import whose directory can be allowed is refused like a request for that directory', () => {
  const left = [{ id: 'a', reason: 'it does not exist', allowRoot: null }, { id: 'b', reason: 'not allowed', allowRoot: '/srv/app' }]
  expect(() => requireAllowed({ taken: [], left })).toThrow(new ApiError(403, 'forbidden', 'not allowed', { allowRoot: '/srv/app' }))
  expect(() => requireAllowed({ taken: [], left: left.slice(0, 1) })).not.toThrow()
})
