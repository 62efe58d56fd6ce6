import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fakeStorage } from '../testing/storage.ts'
import type { Command } from './commands.svelte.ts'
import { helpLines } from './help-lines.ts'
import { chooseKeys, resetKeys } from './shortcuts.ts'

const command = (id: string, title: string, keys?: string): Command => ({ id, title, group: 'Go to', ...(keys && { keys }), run: () => {} })
const places = Array.from({ length: 9 }, (_, n) => command(`go.session.${n + 1}`, `Session ${n + 1} of the list`, `Mod+${n + 1}`))
const lines = () => helpLines([command('go.home', 'Home', 'Mod+H'), command('go.usage', 'Usage'), ...places]).map(({ title, keys }) => `${title}: ${keys}`)

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

test('each command with a shortcut has a line, and all sessions share one', () => {
  expect(lines()).toEqual(['Home: Ctrl+H', 'Sessions 1 to 9 of the list: Ctrl+1–9'])
})

test('the line of the sessions shows the chosen shortcuts', () => {
  for (const [n, { id }] of places.entries()) chooseKeys(id, `Alt+${n + 1}`)
  expect(lines()).toEqual(['Home: Ctrl+H', 'Sessions 1 to 9 of the list: Alt+1–9'])
})

test('sessions without consecutive shortcuts have a line each', () => {
  chooseKeys('go.session.2', 'Alt+X')
  chooseKeys('go.session.9', null)
  expect(lines().slice(1, 4)).toEqual(['Session 1 of the list: Ctrl+1', 'Session 2 of the list: Alt+X', 'Session 3 of the list: Ctrl+3'])
  expect(lines()).toHaveLength(9)
})

test('sessions with the same shortcut have a line each', () => {
  for (const { id } of places) chooseKeys(id, 'Alt+X')
  expect(lines()).toHaveLength(10)
})

test('a command shows both of its shortcuts until the user changes them', () => {
  const help = { id: 'help.keys', title: 'Help', keys: 'Mod+/', also: '?' }
  expect(helpLines([help])[0]?.keys).toBe('Ctrl+/ or ?')
  chooseKeys('help.keys', 'Alt+H')
  expect(helpLines([help])[0]?.keys).toBe('Alt+H')
})

test('a chosen shortcut that the browser reserves is ignored', () => {
  chooseKeys('go.home', 'Mod+T')
  expect(lines()[0]).toBe('Home: Ctrl+H')
})
