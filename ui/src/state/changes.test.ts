import { expect, test } from 'vitest'
import { aSession, aWorker } from '../testing/things.ts'
import { momentOf } from './changes.svelte.ts'

const session = aSession({ repoId: 'r' })

test('a session outside of a repository has nothing to count', () => {
  expect(momentOf(aSession())).toBeUndefined()
})

test('an agent that comes to rest is a reason to look, one that works is none', () => {
  const before = momentOf({ ...session, workers: [aWorker({ activity: 'idle', activitySince: '1' })] })
  const working = momentOf({ ...session, workers: [aWorker({ activity: 'active', activitySince: '2' })] })
  const still = momentOf({ ...session, workers: [aWorker({ activity: 'active', activitySince: '3' })] })
  const after = momentOf({ ...session, workers: [aWorker({ activity: 'idle', activitySince: '4' })] })
  expect(working).toBe(still)
  expect(new Set([before, working, after]).size).toBe(3)
})

test('a terminal that is typed into is no reason', () => {
  const one = momentOf({ ...session, workers: [aWorker({ type: 'terminal', activitySince: '1' })] })
  const other = momentOf({ ...session, workers: [aWorker({ type: 'terminal', activitySince: '2' })] })
  expect(one).toBe(other)
})
