import { expect, test } from 'vitest'
import { formatRoute, loginCode, parseRoute } from './route.ts'

test.each([{ sessionId: 'a1-b2' }, { sessionId: 'a1', workerId: 'w-2' }])('%j survives the address bar', (route) => {
  expect(parseRoute(formatRoute(route))).toEqual(route)
})

test.each(['', '#', '#/', '#code=abc', '#/session/', '#/session/a/b/c', '#/session/<x>'])('%j names no session', (hash) => {
  expect(parseRoute(hash)).toBeUndefined()
})

test('the login code is what follows #code=', () => {
  expect(loginCode('#code=K7-xyz')).toBe('K7-xyz')
  expect(loginCode('#/session/a')).toBeUndefined()
})
