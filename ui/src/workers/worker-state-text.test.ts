import { expect, test } from 'vitest'
import { aWorker } from '../testing/test-records.ts'
import { workerStateText } from './worker-state-text.ts'

test('an ended worker shows how it ended', () => {
  expect(workerStateText(aWorker({ state: 'exited', exitCode: 0 }))).toBe('finished')
  expect(workerStateText(aWorker({ state: 'exited', signal: 'SIGKILL' }))).toBe('ended by signal SIGKILL')
  expect(workerStateText(aWorker({ state: 'exited', exitCode: 3 }))).toBe('finished (exit code 3)')
  expect(workerStateText(aWorker({ state: 'failed', error: 'it crashed (exit code 1)', exitCode: 1 }))).toBe('crashed (exit code 1)')
  expect(workerStateText(aWorker({ state: 'terminated', exitCode: 0 }))).toBe('stopped')
})

test('a running worker shows its activity', () => {
  expect(workerStateText(aWorker({ activityWhy: 'waits for a prompt' }))).toBe('waits for a prompt')
  expect(workerStateText(aWorker({ state: 'spawning' }))).toBe('starting')
})
