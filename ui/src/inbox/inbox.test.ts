import { expect, test } from 'vitest'
import { anItem } from '../testing/things.ts'
import { keyOf, optionFor, textOf } from './inbox.ts'

const once = { optionId: 'yes', name: 'Allow', kind: 'allow_once' }
const always = { optionId: 'always', name: 'Always', kind: 'allow_always' }
const never = { optionId: 'never', name: 'Never', kind: 'reject_always' }

test('a key is for the answer of its kind', () => {
  expect(optionFor('a', [always, once])).toBe(once)
  expect(optionFor('A', [always, once])).toBe(always)
  expect(optionFor('d', [once, never])).toBe(never)
})

test('a key nobody knows, or without its answer, is for none', () => {
  expect(optionFor('x', [once])).toBeUndefined()
  expect(optionFor('constructor', [once])).toBeUndefined()
  expect(optionFor('A', [once])).toBeUndefined()
  expect(keyOf({ optionId: 'o', name: 'Other', kind: 'other' }, [once])).toBeUndefined()
})

test('how a turn ended is said in words a person uses', () => {
  expect(textOf(anItem({ text: 'end_turn' }))).toBe('The turn is over.')
  expect(textOf(anItem({ text: 'the model is overloaded' }))).toBe('the model is overloaded')
  expect(textOf(anItem({ kind: 'failed', text: 'refusal' }))).toBe('refusal')
})
