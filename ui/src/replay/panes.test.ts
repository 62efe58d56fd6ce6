import { expect, test } from 'vitest'
import type { Marker, Timeline } from '../api/types/timeline.ts'
import type { Worker } from '../api/types/workers.ts'
import { panesOf } from './panes.ts'

const chat = { type: 'agent', agentKind: 'acp' } as Worker
const typist = { type: 'agent', agentKind: 'pty' } as Worker
const shell = { type: 'terminal', agentKind: null } as Worker
const diff = { type: 'diff', agentKind: null } as Worker

const silent: Timeline = { begins: 0, ends: 1, head: 1, markers: [], truncated: false, terminals: [], moment: null }
const line = { workerId: 'w', run: 1, start: 5, end: 9, points: [], sizes: [] }
const marked = (kind: Marker['kind']): Timeline => ({ ...silent, markers: [{ seq: 1, time: 0, kind, label: '', workerId: null }] })

const namesOf = (workers: Worker[], timeline: Timeline) => panesOf(workers, timeline).map(({ id }) => id)

test('there is a pane for what the session has', () => {
  expect(namesOf([chat, shell, diff], { ...silent, terminals: [line] })).toEqual(['conversation', 'terminals', 'changes'])
  expect(namesOf([chat], marked('prompt'))).toEqual(['conversation'])
})

test('an agent that only has a terminal is seen there first', () => {
  expect(namesOf([typist, diff], { ...silent, terminals: [line] })).toEqual(['terminals', 'changes'])
})

test('a terminal that never said anything has no pane', () => {
  expect(namesOf([chat, shell], { ...silent, terminals: [{ ...line, end: 5 }] })).toEqual(['conversation'])
})

test('what an agent did or asked to do may have changed something', () => {
  expect(namesOf([chat], marked('tool'))).toEqual(['conversation', 'changes'])
  expect(namesOf([chat], marked('permission'))).toEqual(['conversation', 'changes'])
})

test('a session without anything has a pane that says so', () => {
  expect(namesOf([], silent)).toEqual(['conversation'])
})
