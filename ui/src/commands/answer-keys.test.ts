import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fakeStorage } from '../testing/storage.ts'
import { keyOf, isAnswerKey, optionFor } from './answer-keys.ts'
import { chooseKeys, resetKeys } from './shortcuts.ts'

const once = { optionId: 'yes', name: 'Allow', kind: 'allow_once' }
const always = { optionId: 'always', name: 'Always', kind: 'allow_always' }
const never = { optionId: 'never', name: 'Never', kind: 'reject_always' }

beforeEach(() => {
  vi.useFakeTimers()
  fakeStorage()
})

afterEach(() => {
  resetKeys()
  vi.runAllTimers()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('a key selects the option of its kind', () => {
  expect(optionFor('a', [always, once])).toBe(once)
  expect(optionFor('A', [always, once])).toBe(always)
  expect(optionFor('d', [once, never])).toBe(never)
})

test('an unknown key, or a key without its option, selects none', () => {
  expect(optionFor('x', [once])).toBeUndefined()
  expect(optionFor('constructor', [once])).toBeUndefined()
  expect(optionFor('A', [once])).toBeUndefined()
  expect(keyOf({ optionId: 'o', name: 'Other', kind: 'other' }, [once])).toBeUndefined()
})

test('keys can be replaced or removed, and the old keys no longer work', () => {
  chooseKeys('permission.allow', 'y')
  chooseKeys('permission.always', null)
  expect(optionFor('y', [once])).toBe(once)
  expect(optionFor('a', [once])).toBeUndefined()
  expect(optionFor('A', [always])).toBeUndefined()
  expect(keyOf(once, [once, always])).toBe('y')
  expect(keyOf(always, [once, always])).toBeUndefined()
})

test('only a letter or digit that the inbox does not use can be chosen', () => {
  expect(['y', 'Y', '1', 'ö'].every(isAnswerKey)).toBe(true)
  expect(['j', 'k', 's', ' ', 'Enter', 'ArrowUp', '/', 'Backspace'].some(isAnswerKey)).toBe(false)
})
