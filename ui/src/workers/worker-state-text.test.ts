import { expect, test } from 'vitest'
import { aWorker } from '../testing/test-records.ts'
import { workerStateText } from './worker-state-text.ts'

test('an ended worker shows how it ended, with the same texts as the command line', () => {
  expect(workerStateText(aWorker({ state: 'exited', exitCode: 0 }))).toBe('ended with code 0')
  expect(workerStateText(aWorker({ state: 'exited', signal: 'SIGKILL' }))).toBe('ended by SIGKILL')
  expect(workerStateText(aWorker({ state: 'exited' }))).toBe('ended')
  expect(workerStateText(aWorker({ state: 'failed', error: 'it crashed', exitCode: 1 }))).toBe('failed: it crashed')
  expect(workerStateText(aWorker({ state: 'terminated', exitCode: 0 }))).toBe('terminated')
})

test('a running worker shows its activity', () => {
  expect(workerStateText(aWorker({ activityWhy: 'waits for a prompt' }))).toBe('waits for a prompt')
  expect(workerStateText(aWorker({ state: 'spawning' }))).toBe('spawning')
})
