import { expect, test } from 'vitest'
import { AFTER_CTRL, withCtrl } from './bar-keys.ts'

test.each([
  ['c', '\x03'],
  ['C', '\x03'],
  ['[', '\x1b'],
  ['_', '\x1f'],
  [' ', '\0'],
  ['?', '\x7f'],
  ['é', 'é'],
  ['1', '1'],
  ['\x1b[A', '\x1b[A'],
])('Ctrl with %j is %j', (data, control) => expect(withCtrl(data)).toBe(control))

test('arrow keys depend on the mode that the program set', () => {
  const up = AFTER_CTRL.find(({ name }) => name === 'Up')
  expect([up?.types(false), up?.types(true)]).toEqual(['\x1b[A', '\x1bOA'])
})
