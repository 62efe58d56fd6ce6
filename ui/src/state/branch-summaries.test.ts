import { expect, test } from 'vitest'
import { aSession, aWorker } from '../testing/test-records.ts'
import { workspaceVersion } from './branch-summaries.svelte.ts'

const session = aSession({ repoId: 'r' })

test('a session without a repository is never loaded', () => {
  expect(workspaceVersion(aSession())).toBeUndefined()
})

test('an agent that becomes idle causes a reload, a working agent does not', () => {
  const before = workspaceVersion({ ...session, workers: [aWorker({ activity: 'idle', activitySince: '1' })] })
  const working = workspaceVersion({ ...session, workers: [aWorker({ activity: 'active', activitySince: '2' })] })
  const still = workspaceVersion({ ...session, workers: [aWorker({ activity: 'active', activitySince: '3' })] })
  const after = workspaceVersion({ ...session, workers: [aWorker({ activity: 'idle', activitySince: '4' })] })
  expect(working).toBe(still)
  expect(new Set([before, working, after]).size).toBe(3)
})

test('activity of a terminal causes no reload', () => {
  const one = workspaceVersion({ ...session, workers: [aWorker({ type: 'terminal', activitySince: '1' })] })
  const other = workspaceVersion({ ...session, workers: [aWorker({ type: 'terminal', activitySince: '2' })] })
  expect(one).toBe(other)
})
