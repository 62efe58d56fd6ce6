import { expect, test } from 'vitest'
import type { Marker, Timeline } from '../api/types/timeline.ts'
import type { Worker } from '../api/types/workers.ts'
import { panesOf } from './panes.ts'

const chat = { type: 'agent', agentKind: 'acp' } as Worker
const terminalAgent = { type: 'agent', agentKind: 'pty' } as Worker
const shell = { type: 'terminal', agentKind: null } as Worker
const diff = { type: 'diff', agentKind: null } as Worker

const silent: Timeline = { begins: 0, ends: 1, head: 1, markers: [], truncated: false, terminals: [], moment: null }
const line = { workerId: 'w', run: 1, start: 5, end: 9, points: [], sizes: [] }
const marked = (kind: Marker['kind']): Timeline => ({ ...silent, markers: [{ seq: 1, time: 0, kind, label: '', workerId: null }] })

const namesOf = (workers: Worker[], timeline: Timeline) => panesOf(workers, timeline).map(({ id }) => id)

test('each part that a session has gets a pane', () => {
  expect(namesOf([chat, shell, diff], { ...silent, terminals: [line] })).toEqual(['conversation', 'terminals', 'changes'])
  expect(namesOf([chat], marked('prompt'))).toEqual(['conversation'])
})

test('a session whose agent runs in a terminal shows the terminals first', () => {
  expect(namesOf([terminalAgent, diff], { ...silent, terminals: [line] })).toEqual(['terminals', 'changes'])
})

test('terminals without output have no pane', () => {
  expect(namesOf([chat, shell], { ...silent, terminals: [{ ...line, end: 5 }] })).toEqual(['conversation'])
})

test('tool calls and permission requests add the pane for changes', () => {
  expect(namesOf([chat], marked('tool'))).toEqual(['conversation', 'changes'])
  expect(namesOf([chat], marked('permission'))).toEqual(['conversation', 'changes'])
})

test('an empty session shows the pane for conversations', () => {
  expect(namesOf([], silent)).toEqual(['conversation'])
})
