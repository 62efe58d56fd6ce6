import { expect, test } from 'vitest'
import { anAgent } from '../testing/test-records.ts'
import { agentGroups, lacksLogin, loginCommandLine, mayNeedLogin, installText } from './login-text.ts'

test('an installed agent shows whether a login was found, if that is known', () => {
  const words = (['yes', 'no', 'unknown', 'none'] as const).map((loggedIn) => installText(anAgent({ loggedIn })))
  expect(words).toEqual(['logged in', 'no login found', 'installed', 'installed'])
  expect(installText(anAgent({ installed: false, loggedIn: 'no' }))).toBe('not installed')
})

test('only an installed agent can lack a login', () => {
  expect(lacksLogin(anAgent({ loggedIn: 'no' }))).toBe(true)
  expect(lacksLogin(anAgent({ loggedIn: 'no', installed: false }))).toBe(false)
  expect(lacksLogin(anAgent({ loggedIn: 'unknown' }))).toBe(false)
})

test('agents that can start at once come first', () => {
  const agents = [anAgent({ id: 'a', installed: false }), anAgent({ id: 'b', loggedIn: 'no' }), anAgent({ id: 'c' })]
  expect(agentGroups(agents).map(({ label, agents }) => [label, ...agents.map(({ id }) => id)])).toEqual([
    ['Installed', 'c'],
    ['Installed, no login found', 'b'],
    ['Not installed', 'a'],
  ])
  expect(agentGroups([])).toEqual([])
})

test('the login command is quoted for a shell', () => {
  expect(loginCommandLine(anAgent({ loginCommand: ['claude', '/login'] }))).toBe('claude /login')
  expect(loginCommandLine(anAgent({ loginCommand: ['my agent', "it's", ''] }))).toBe("'my agent' 'it'\\''s' ''")
  expect(loginCommandLine(anAgent())).toBe('')
})

test('a login is offered unless the agent is logged in or has no login command', () => {
  const loginCommand = ['agent', 'login']
  expect(mayNeedLogin(anAgent({ loggedIn: 'no', loginCommand }))).toBe(true)
  expect(mayNeedLogin(anAgent({ loggedIn: 'unknown', loginCommand }))).toBe(true)
  expect(mayNeedLogin(anAgent({ loggedIn: 'yes', loginCommand }))).toBe(false)
  expect(mayNeedLogin(anAgent({ loggedIn: 'no' }))).toBe(false)
  expect(mayNeedLogin(undefined)).toBe(false)
})
