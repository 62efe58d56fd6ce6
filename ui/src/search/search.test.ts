import { expect, test } from 'vitest'
import { deedOf, hasWord, pieces, queryOf } from './search.svelte.ts'

const NONE = { repoId: '', agentId: '', role: '', days: '' }

test('only what was chosen is asked for', () => {
  expect(queryOf(' a b ', NONE, 30)).toEqual({ q: 'a b', limit: '30' })
  expect(queryOf('a', { ...NONE, role: 'user', days: '1' }, 5, Date.UTC(2026, 2, 2))).toEqual({ q: 'a', limit: '5', role: 'user', after: '2026-03-01T00:00:00.000Z' })
})

test('found words are told from what is round them', () => {
  expect(pieces('A Needle in hay', 'needle')).toEqual(['A ', 'Needle', ' in hay'])
  expect(pieces('größer groß', 'groß größer')).toEqual(['', 'größer', ' ', 'groß', ''])
  expect(pieces('a (b', '(')).toEqual(['a (b'])
})

test('signs alone are no word', () => {
  expect(['', ' * ', 'ä', '7'].map(hasWord)).toEqual([false, false, true, true])
})

test('a failure is not called done', () => {
  const label = (role: string, type: string) => deedOf({ role, type })?.label
  expect([label('system', 'error'), label('system', 'worker_failed')]).toEqual(['Error', 'Error'])
  expect([label('system', 'plan'), label('system', 'tool_call_update')]).toEqual(['Plan', 'Tool call'])
  expect(label('agent', 'agent_message')).toBeUndefined()
})
