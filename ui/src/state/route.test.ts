import { expect, test } from 'vitest'
import { formatRoute, loginCode, parseRoute, sharedSession, type Route } from './route.ts'

test.each<Route>([
  { view: 'home' },
  { view: 'new' },
  { view: 'settings', section: 'keys' },
  { view: 'replay', sessionId: 'a-1' },
  { view: 'replay', sessionId: 'a-1', at: 1772357400000 },
  { view: 'session', sessionId: 'a-1' },
  { view: 'session', sessionId: 'a-1', workerId: 'b-2' },
  { view: 'session', sessionId: 'a-1', workerId: 'b-2', at: 1234 },
  { view: 'inbox' },
  { view: 'usage' },
  { view: 'search', query: '' },
  { view: 'search', query: 'größe 100% a/b' },
])('a route survives formatting and parsing: %o', (route) => {
  expect(parseRoute(formatRoute(route))).toEqual(route)
})

test.each(['', '#', '#/', '#/session', '#/nonsense/x', '#code=abc', '#/session/a/b/c'])('%s is the home page', (hash) => {
  expect(parseRoute(hash)).toEqual({ view: 'home' })
})

test('a truncated search address has an empty query', () => {
  expect(parseRoute('#/search/100%')).toEqual({ view: 'search', query: '' })
})

test('an unknown settings section becomes the first', () => {
  expect(parseRoute('#/settings/nonsense')).toEqual({ view: 'settings', section: 'appearance' })
})

test('a share link names its session and its token', () => {
  expect(sharedSession('#share=4c0f-1/bpt_a-_b')).toEqual({ sessionId: '4c0f-1', token: 'bpt_a-_b' })
  expect(sharedSession('#share=bpt_a')).toBeUndefined()
  expect(sharedSession('#/session/a')).toBeUndefined()
})

test('the code of a printed address is found', () => {
  expect(loginCode('#code=abc-_d')).toBe('abc-_d')
  expect(loginCode('#/session/a')).toBeUndefined()
})
