import { expect, test } from 'vitest'
import { splitCommand } from './command-line.ts'

test('a command line is split at spaces, except within quotes', () => {
  expect(splitCommand(`agent --acp "two words" 'and three more' ""`)).toEqual(['agent', '--acp', 'two words', 'and three more', ''])
  expect(splitCommand('  ')).toEqual([])
})
