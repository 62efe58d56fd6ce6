import { expect, test } from 'vitest'
import { splitWords } from './words.ts'

test('a command line is split at spaces, except within quotes', () => {
  expect(splitWords(`agent --acp "two words" 'and three more' ""`)).toEqual(['agent', '--acp', 'two words', 'and three more', ''])
  expect(splitWords('  ')).toEqual([])
})
