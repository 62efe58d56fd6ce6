import { expect, test } from 'vitest'
import { iconOf, titleOf } from './tab-badge.ts'

const none = { asking: 0, error: 0, done: 0 }

test('the title has the number of sessions that need the user, and the most urgent symbol', () => {
  expect(titleOf(undefined, none)).toBe('Bullpen')
  expect(titleOf('Fix it', none)).toBe('Fix it · Bullpen')
  expect(titleOf('Fix it', { asking: 1, error: 1, done: 1 })).toBe('● 3 · Fix it · Bullpen')
  expect(titleOf(undefined, { ...none, done: 2 })).toBe('◆ 2 · Bullpen')
})

test('the icon shows the most urgent state', () => {
  expect(iconOf(none)).toBe('quiet')
  expect(iconOf({ asking: 1, error: 3, done: 0 })).toBe('asking')
  expect(iconOf({ ...none, error: 1 })).toBe('error')
})
