import { expect, test } from 'vitest'
import { backoff } from './backoff.ts'

test('the wait doubles from one second to thirty and stays there', () => {
  const waits = [0, 1, 2, 3, 4, 5, 6, 40].map((attempt) => backoff(attempt, () => 1))
  expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
})

test('jitter shortens a wait by at most half', () => {
  expect(backoff(2, () => 0)).toBe(2000)
})
