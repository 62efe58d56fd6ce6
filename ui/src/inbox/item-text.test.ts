import { expect, test } from 'vitest'
import { anItem } from '../testing/test-records.ts'
import { itemText } from './item-text.ts'

test('a stop reason is shown as a sentence', () => {
  expect(itemText(anItem({ text: 'end_turn' }), undefined)).toBe('Finished.')
  expect(itemText(anItem({ kind: 'permission', text: 'Edit notes.md' }), undefined)).toBe('Edit notes.md')
  expect(itemText(anItem({ kind: 'failed', text: 'refusal' }), undefined)).toBe('refusal')
})

test('a failure names the agent that failed', () => {
  expect(itemText(anItem({ kind: 'failed', text: 'it crashed (exit code 3)' }), { name: 'Demo' })).toBe('Demo crashed (exit code 3)')
  expect(itemText(anItem({ kind: 'failed', text: 'overloaded' }), { name: 'Demo' })).toBe('Demo: overloaded')
})
