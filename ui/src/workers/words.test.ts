import { expect, test } from 'vitest'
import { aWorker } from '../testing/things.ts'
import { lifeOf } from './words.ts'

test('an ended worker shows how it ended, with the same texts as the command line', () => {
  expect(lifeOf(aWorker({ state: 'exited', exitCode: 0 }))).toBe('ended with code 0')
  expect(lifeOf(aWorker({ state: 'exited', signal: 'SIGKILL' }))).toBe('ended by SIGKILL')
  expect(lifeOf(aWorker({ state: 'exited' }))).toBe('ended')
  expect(lifeOf(aWorker({ state: 'failed', error: 'it crashed', exitCode: 1 }))).toBe('failed: it crashed')
  expect(lifeOf(aWorker({ state: 'terminated', exitCode: 0 }))).toBe('terminated')
})

test('a running worker shows its activity', () => {
  expect(lifeOf(aWorker({ activityWhy: 'waits for a prompt' }))).toBe('waits for a prompt')
  expect(lifeOf(aWorker({ state: 'spawning' }))).toBe('spawning')
})
