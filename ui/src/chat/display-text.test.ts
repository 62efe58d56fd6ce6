import { expect, test } from 'vitest'
import type { Entries } from '../state/entries.ts'
import { commandsOf, completions, selectorsOf } from './agent-settings.ts'
import { findEntries } from './find-entries.ts'
import { countsOf, linesOf } from './line-diff.ts'
import { plainOutput } from './plain-output.ts'
import { age, ago, duration } from '../parts/time.ts'
import { usageOf } from './usage.ts'

const SETTINGS = { acpSessionId: 'a', modes: null, models: null, configOptions: null, commands: [] }

test('times are formatted as relative times and durations', () => {
  const at = '2026-03-01T10:00:00.000Z'
  const after = (seconds: number) => Date.parse(at) + seconds * 1000
  expect([10, 120, 7200, 200_000].map((s) => ago(at, after(s)))).toEqual(['just now', '2 min ago', '2 h ago', '2 d ago'])
  expect([12, 75, 3725, -5].map((s) => duration(at, after(s)))).toEqual(['12 s', '1 min 15 s', '1 h 2 min', '0 s'])
})

test('short and long relative times are rounded in the same way', () => {
  const at = '2026-03-01T10:00:00.000Z'
  for (const seconds of [0, 44, 59, 60, 89, 100, 3599, 3600, 5400, 100_000, 180_000]) {
    const then = Date.parse(at) + seconds * 1000
    expect(ago(at, then).replace('just now', 'now').replace(' ago', '')).toBe(age(at, then))
  }
})

test('usage has a short text and exact figures', () => {
  expect(usageOf({ used: 12_345, size: 200_000, cost: { amount: 0.125, currency: 'USD' }, turn: null })).toEqual({
    short: '12.3k / 200k · $0.13',
    details: `${(12345).toLocaleString()} of ${(200000).toLocaleString()} tokens, 6 %; cost so far: $0.13`,
    share: 12_345 / 200_000,
  })
  expect(usageOf({ used: null, size: null, cost: null, turn: null })).toBeUndefined()
})

test('each mode, model and option has one selector', () => {
  const selectors = selectorsOf({
    ...SETTINGS,
    modes: { currentModeId: 'ask', availableModes: [{ id: 'ask', name: 'Ask' }, { id: 'code' }] },
    configOptions: [
      { id: 'mode', category: 'mode', currentValue: 'ask', options: [{ value: 'ask', name: 'Ask' }] },
      { id: 'pace', name: 'Pace', currentValue: 'fast', options: [{ name: 'All', options: [{ value: 'fast', name: 'Fast' }] }] },
      { id: 'loud', type: 'boolean', currentValue: true },
      'nonsense',
    ],
  })
  expect(selectors.map(({ label, value }) => [label, value])).toEqual([['Mode', 'ask'], ['Pace', 'fast'], ['loud', 'true']])
  expect(selectors[0]?.values[1]).toEqual({ value: 'code', name: 'code', description: '' })
  expect(selectors[2]?.choice('false')).toEqual({ kind: 'option', id: 'loud', value: false })
  expect(selectorsOf(null)).toEqual([])
})

test('a slash completes to commands with that prefix, then to commands that contain it', () => {
  const commands = commandsOf({ ...SETTINGS, commands: [{ name: 'replan' }, { name: '/plan', description: 'Makes one' }, null] })
  expect(completions(commands, '/pl').map(({ name }) => name)).toEqual(['plan', 'replan'])
  expect(completions(commands, '/plan it')).toEqual([])
  expect(completions(commands, 'pl')).toEqual([])
})

test('a change is shown as its lines with context', () => {
  const lines = linesOf('a\nb\nc\n', 'a\nB\nc\nd\n')
  expect(lines.map(({ sign, text, number }) => `${sign}${text}${number}`)).toEqual([' a1', '-b2', '+B2', ' c3', '+d4'])
  expect(countsOf(lines)).toEqual({ added: 2, removed: 1 })
  expect(linesOf('', 'new\n')).toEqual([{ sign: '+', text: 'new', number: 1 }])
})

test('terminal output becomes plain text without colours, with the final state of each line', () => {
  expect(plainOutput('\u001b[31mred\u001b[0m\r\n10 %\r100 %\r\n\u001b]0;title\u0007end\u0000\r\n\r\n')).toBe('red\n100 %\nend')
})

test('text is found in messages, tool calls and plans', () => {
  const at = ''
  const entries: Entries = [
    { key: 1, at, kind: 'prompt', promptId: 'p', text: 'Fix the Build', imageIds: [], sender: undefined },
    { key: 2, at, kind: 'tool', call: { toolCallId: 't', title: 'Run', rawInput: { command: 'make build' } }, output: '' },
    { key: 3, at, kind: 'plan', steps: [{ text: 'rebuild', status: 'pending' }] },
    { key: 4, at, kind: 'note', text: 'other', bad: false },
  ]
  expect(findEntries(entries, ' build ')).toEqual([0, 1, 2])
  expect(findEntries(entries, ' ')).toEqual([])
})
