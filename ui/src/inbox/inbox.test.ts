import { expect, test } from 'vitest'
import { anItem } from '../testing/things.ts'
import { textOf } from './inbox.ts'

test('a stop reason is shown as a sentence', () => {
  expect(textOf(anItem({ text: 'end_turn' }), undefined)).toBe('The turn is over.')
  expect(textOf(anItem({ text: 'the model is overloaded' }), undefined)).toBe('the model is overloaded')
  expect(textOf(anItem({ kind: 'failed', text: 'refusal' }), undefined)).toBe('refusal')
})

test('a failure names the agent that failed', () => {
  expect(textOf(anItem({ kind: 'failed', text: 'it ended with exit code 3' }), { name: 'Demo' })).toBe('Demo ended with exit code 3')
  expect(textOf(anItem({ kind: 'failed', text: 'overloaded' }), { name: 'Demo' })).toBe('Demo: overloaded')
})
