import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { deedOf, hasWord, pieces, queryOf, Searching } from './search.svelte.ts'

let found: object[]
let asked: string[]

beforeEach(() => {
  vi.useFakeTimers()
  found = []
  asked = []
  vi.stubGlobal('localStorage', { getItem: () => 'the-secret' })
  vi.stubGlobal('fetch', async (path: string) => {
    asked.push(new URL(path, 'http://x').searchParams.get('q') ?? '')
    return Response.json({ results: found })
  })
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

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

test('what can be found only a moment later is found without another key', async () => {
  const searching = new Searching()
  searching.words = 'needle'
  await searching.again()
  expect([searching.results, searching.busy]).toEqual([[], false])
  found = [{ seq: 1 }]
  await vi.advanceTimersByTimeAsync(500)
  expect(searching.results).toEqual([{ seq: 1 }])
})

test('it is asked again a few times, and not for ever', async () => {
  const searching = new Searching()
  searching.words = 'needle'
  await searching.again()
  await vi.advanceTimersByTimeAsync(600_000)
  expect(asked).toHaveLength(7)
})

test('who goes on typing, or goes away, is not answered about what stood there before', async () => {
  const searching = new Searching()
  searching.words = 'nee'
  const looking = searching.again()
  searching.rest()
  await looking
  searching.words = 'needl'
  await vi.advanceTimersByTimeAsync(600_000)
  expect(asked).toEqual(['nee'])
})
