import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { aSession } from '../testing/test-records.ts'
import type { Session } from '../api/types/sessions.ts'
import { attentionOf, groupSessions, MARKS, type Need } from './attention.ts'

const BEFORE = '2025-12-31T00:00:00.000Z'

interface State {
  about: string
  status: Session['status']
  need: Need
  sign: string
  word: string
  /** The word of the page, if it differs from that of the command line. */
  page?: string
  colour: string
}

const STATES = JSON.parse(readFileSync(new URL('../../../tests/golden/words/states.json', import.meta.url), 'utf8')) as State[]
const COLOURS = { warn: 'amber', bad: 'red', news: 'blue', good: 'green', quiet: 'grey' } as const

test.each(STATES)('a state has the same symbol and label as on the command line: $about', ({ status, need, sign, word, page, colour }) => {
  const attention = { need, why: 'a reason', since: BEFORE }
  const { mark, label, ...shown } = attentionOf(aSession({ status, attention }))
  expect([MARKS[mark].sign, label, COLOURS[MARKS[mark].tone]]).toEqual([sign, page ?? word, colour])
  expect(shown).toEqual(attention)
})

test('sessions are grouped by repository or directory, those that need the user first', () => {
  const needs: Record<string, Need> = { quiet: 'idle', question: 'asking', busy: 'working', loose: 'idle' }
  const sessions = ['quiet', 'busy', 'question'].map((id) => aSession({ id, repoId: 'r' }))
  const loose = aSession({ id: 'loose', locationPath: '/home/me/notes' })
  const inside = aSession({ id: 'inside', locationPath: '/src/atlas', createdAt: BEFORE })
  const groups = groupSessions([loose, inside, ...sessions], [{ id: 'r', name: 'Atlas', path: '/src/atlas' }], ({ id }) => needs[id] ?? 'idle')
  expect(groups.map(({ name, sessions }) => [name, sessions.map(({ id }) => id)])).toEqual([
    ['Atlas', ['question', 'busy', 'quiet', 'inside']],
    ['notes', ['loose']],
  ])
})
