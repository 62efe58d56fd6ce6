import { expect, test } from 'vitest'
import { anItem } from '../testing/things.ts'
import { textOf } from './inbox.ts'

test('how a turn ended is said in words a person uses', () => {
  expect(textOf(anItem({ text: 'end_turn' }))).toBe('The turn is over.')
  expect(textOf(anItem({ text: 'the model is overloaded' }))).toBe('the model is overloaded')
  expect(textOf(anItem({ kind: 'failed', text: 'refusal' }))).toBe('refusal')
})
