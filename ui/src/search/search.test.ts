import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemLabel, hasWord, splitAtMatches, queryOf, SessionSearch } from './search.svelte.ts'

let found: object[]
let queries: string[]

beforeEach(() => {
  vi.useFakeTimers()
  found = []
  queries = []
  vi.stubGlobal('localStorage', { getItem: () => 'the-secret' })
  vi.stubGlobal('fetch', async (path: string) => {
    queries.push(new URL(path, 'http://x').searchParams.get('q') ?? '')
    return Response.json({ results: found })
  })
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const NONE = { repoId: '', agentId: '', role: '', days: '' }

test('only chosen filters are sent', () => {
  expect(queryOf(' a b ', NONE, 30)).toEqual({ q: 'a b', limit: '30' })
  expect(queryOf('a', { ...NONE, role: 'user', days: '1' }, 5, Date.UTC(2026, 2, 2))).toEqual({ q: 'a', limit: '5', role: 'user', after: '2026-03-01T00:00:00.000Z' })
})

test('a text is split into matches and other text', () => {
  expect(splitAtMatches('A Needle in hay', 'needle')).toEqual(['A ', 'Needle', ' in hay'])
  expect(splitAtMatches('größer groß', 'groß größer')).toEqual(['', 'größer', ' ', 'groß', ''])
  expect(splitAtMatches('a (b', '(')).toEqual(['a (b'])
})

test('punctuation alone is no query', () => {
  expect(['', ' * ', 'ä', '7'].map(hasWord)).toEqual([false, false, true, true])
})

test('errors, plans and tool calls have different labels', () => {
  const label = (role: string, type: string) => systemLabel({ role, type })?.label
  expect([label('system', 'error'), label('system', 'worker_failed')]).toEqual(['Error', 'Error'])
  expect([label('system', 'plan'), label('system', 'tool_call_update')]).toEqual(['Plan', 'Tool call'])
  expect(label('agent', 'agent_message')).toBeUndefined()
})

test('a result that is indexed late is found without user input', async () => {
  const search = new SessionSearch()
  search.query = 'needle'
  await search.restart()
  expect([search.results, search.busy]).toEqual([[], false])
  found = [{ seq: 1 }]
  await vi.advanceTimersByTimeAsync(500)
  expect(search.results).toEqual([{ seq: 1 }])
})

test('a search is repeated a few times and then stops', async () => {
  const search = new SessionSearch()
  search.query = 'needle'
  await search.restart()
  await vi.advanceTimersByTimeAsync(600_000)
  expect(queries).toHaveLength(7)
})

test('a stopped search is not repeated', async () => {
  const search = new SessionSearch()
  search.query = 'nee'
  const pending = search.restart()
  search.stopRepeating()
  await pending
  search.query = 'needl'
  await vi.advanceTimersByTimeAsync(600_000)
  expect(queries).toEqual(['nee'])
})
