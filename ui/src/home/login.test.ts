import { expect, test } from 'vitest'
import { anAgent } from '../testing/things.ts'
import { lacksLogin, loginLine, mayLogIn, stateOf } from './login.ts'

test('an installed agent shows whether a login was found, if that is known', () => {
  const words = (['yes', 'no', 'unknown', 'none'] as const).map((loggedIn) => stateOf(anAgent({ loggedIn })))
  expect(words).toEqual(['logged in', 'no login found', 'installed', 'installed'])
  expect(stateOf(anAgent({ installed: false, loggedIn: 'no' }))).toBe('not installed')
})

test('only an installed agent can lack a login', () => {
  expect(lacksLogin(anAgent({ loggedIn: 'no' }))).toBe(true)
  expect(lacksLogin(anAgent({ loggedIn: 'no', installed: false }))).toBe(false)
  expect(lacksLogin(anAgent({ loggedIn: 'unknown' }))).toBe(false)
})

test('the login command is quoted for a shell', () => {
  expect(loginLine(anAgent({ loginCommand: ['claude', '/login'] }))).toBe('claude /login')
  expect(loginLine(anAgent({ loginCommand: ['my agent', "it's", ''] }))).toBe("'my agent' 'it'\\''s' ''")
  expect(loginLine(anAgent())).toBe('')
})

test('a login is offered unless the agent is logged in or has no login command', () => {
  const loginCommand = ['agent', 'login']
  expect(mayLogIn(anAgent({ loggedIn: 'no', loginCommand }))).toBe(true)
  expect(mayLogIn(anAgent({ loggedIn: 'unknown', loginCommand }))).toBe(true)
  expect(mayLogIn(anAgent({ loggedIn: 'yes', loginCommand }))).toBe(false)
  expect(mayLogIn(anAgent({ loggedIn: 'no' }))).toBe(false)
  expect(mayLogIn(undefined)).toBe(false)
})
