import { expect, test } from 'vitest'
import { anItem } from '../testing/test-records.ts'
import { itemText } from './item-text.ts'

test('a stop reason is shown as a sentence', () => {
  expect(itemText(anItem({ text: 'end_turn' }), undefined)).toBe('The turn is over.')
  expect(itemText(anItem({ text: 'the model is overloaded' }), undefined)).toBe('the model is overloaded')
  expect(itemText(anItem({ kind: 'failed', text: 'refusal' }), undefined)).toBe('refusal')
})

test('a failure names the agent that failed', () => {
  expect(itemText(anItem({ kind: 'failed', text: 'it ended with exit code 3' }), { name: 'Demo' })).toBe('Demo ended with exit code 3')
  expect(itemText(anItem({ kind: 'failed', text: 'overloaded' }), { name: 'Demo' })).toBe('Demo: overloaded')
})
