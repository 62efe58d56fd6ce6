import { expect, test } from 'vitest'
import { splitWords } from './words.ts'

test('words are parted by spaces and held together by quotes', () => {
  expect(splitWords(`agent --acp "two words" 'and three more' ""`)).toEqual(['agent', '--acp', 'two words', 'and three more', ''])
  expect(splitWords('  ')).toEqual([])
})
