import { expect, test } from 'vitest'
import { aSession, aWorker } from '../testing/test-records.ts'
import { allowText, isUnprotected, levelText, limitText, networkText } from './sandbox-text.ts'

test('each level has a text, and a worker without a level has none', () => {
  expect(levelText('open')).toBe('no sandbox')
  expect(levelText('workspace')).toBe('sandbox')
  expect(levelText('sealed')).toBe('sandbox without network')
  expect(levelText(null)).toBe('')
})

test('a session is unprotected while it has an agent without a sandbox; a terminal does not count', () => {
  const agent = aWorker({ type: 'agent', sandbox: 'open' })
  expect(isUnprotected(aSession({ workers: [agent] }))).toBe(true)
  expect(isUnprotected(aSession({ workers: [{ ...agent, state: 'terminated' }] }))).toBe(false)
  expect(isUnprotected(aSession({ workers: [{ ...agent, sandbox: 'workspace' }] }))).toBe(false)
  expect(isUnprotected(aSession({ workers: [{ ...agent, type: 'terminal' }] }))).toBe(false)
})

test('the network of a run is yours, some hosts, or none', () => {
  expect(networkText({ hasNetwork: true, hosts: [] })).toBe('Yours, with all ports of this machine')
  expect(networkText({ hasNetwork: false, hosts: ['packages.example.org', '.example.org'] })).toBe('Only packages.example.org, .example.org')
  expect(networkText({ hasNetwork: false, hosts: [] })).toBe('None')
})

test('a limit has a unit, and 0 is no limit', () => {
  expect(limitText({ name: 'memory', value: 12 * 2 ** 30 })).toBe('12 GiB')
  expect(limitText({ name: 'disk', value: 1.5 * 2 ** 30 })).toBe('1.5 GiB')
  expect(limitText({ name: 'memory', value: 512 * 2 ** 20 })).toBe('512 MiB')
  expect(limitText({ name: 'processes', value: 4096 })).toBe('4096, with their threads')
  expect(limitText({ name: 'disk', value: 0 })).toBe('no limit')
})

test('a button says what it allows, and where', () => {
  expect(allowText({ kind: 'host', target: 'packages.example.org' }, 'shop')).toBe('Allow packages.example.org for shop')
  expect(allowText({ kind: 'read', target: '/srv/a' }, undefined)).toBe('Allow reading in all sessions')
  expect(allowText({ kind: 'write', target: '/srv/a' }, 'shop')).toBe('Allow writing for shop')
})
