import { expect, test } from 'vitest'
import { fuzzyMatch } from './fuzzy.ts'

function best(query: string, ...texts: string[]): string | undefined {
  return texts
    .map((text) => ({ text, score: fuzzyMatch(query, text)?.score ?? -Infinity }))
    .filter(({ score }) => score > -Infinity)
    .toSorted((a, b) => b.score - a.score)[0]?.text
}

test('all letters must occur in order', () => {
  expect(fuzzyMatch('nse', 'New session')).toBeDefined()
  expect(fuzzyMatch('sen', 'Ne')).toBeUndefined()
})

test('matches at the beginnings of words score higher', () => {
  expect(best('ns', 'Open sessions', 'New session')).toBe('New session')
  expect(best('term', 'Determine', 'New terminal')).toBe('New terminal')
})

test('a match has the positions of its letters', () => {
  expect(fuzzyMatch('ns', 'New session')?.positions).toEqual([0, 4])
  expect(fuzzyMatch('sess', 'New session')?.positions).toEqual([4, 5, 6, 7])
})

test('an empty query matches everything', () => {
  expect(fuzzyMatch('', 'x')).toEqual({ score: 0, positions: [] })
})
