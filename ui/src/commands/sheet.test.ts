import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fakeStorage } from '../testing/storage.ts'
import type { Command } from './commands.svelte.ts'
import { linesOf } from './sheet.ts'
import { chooseKeys, resetKeys } from './shortcuts.ts'

const command = (id: string, title: string, keys?: string): Command => ({ id, title, group: 'Go to', ...(keys && { keys }), run: () => {} })
const places = Array.from({ length: 9 }, (_, n) => command(`go.session.${n + 1}`, `Session ${n + 1} of the list`, `Mod+${n + 1}`))
const told = () => linesOf([command('go.home', 'Home', 'Mod+H'), command('go.usage', 'Usage'), ...places]).map(({ title, keys }) => `${title}: ${keys}`)

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

test('what has keys has a line, and the sessions have one for all', () => {
  expect(told()).toEqual(['Home: Ctrl+H', 'Sessions 1 to 9 of the list: Ctrl+1–9'])
})

test('keys that were chosen for the sessions are what is told', () => {
  for (const [n, { id }] of places.entries()) chooseKeys(id, `Alt+${n + 1}`)
  expect(told()).toEqual(['Home: Ctrl+H', 'Sessions 1 to 9 of the list: Alt+1–9'])
})

test('sessions that are not counted through any more stand each by itself', () => {
  chooseKeys('go.session.2', 'Alt+X')
  chooseKeys('go.session.9', null)
  expect(told().slice(1, 4)).toEqual(['Session 1 of the list: Ctrl+1', 'Session 2 of the list: Alt+X', 'Session 3 of the list: Ctrl+3'])
  expect(told()).toHaveLength(9)
})

test('keys that are the same for all are not counted through', () => {
  for (const { id } of places) chooseKeys(id, 'Alt+X')
  expect(told()).toHaveLength(10)
})

test('a command with two keys has both, until a person chooses another', () => {
  const help = { id: 'help.keys', title: 'Help', keys: 'Mod+/', also: '?' }
  expect(linesOf([help])[0]?.keys).toBe('Ctrl+/ or ?')
  chooseKeys('help.keys', 'Alt+H')
  expect(linesOf([help])[0]?.keys).toBe('Alt+H')
})

test('keys a browser keeps to itself are not offered, even when they were chosen before', () => {
  chooseKeys('go.home', 'Mod+T')
  expect(told()[0]).toBe('Home: Ctrl+H')
})
