import { expect, test } from 'vitest'
import type { Diff } from '../api/types/diff.ts'
import { uncommittedText } from './uncommitted-text.ts'

const diffOf = (...files: [string, boolean, boolean][]) => ({ files: files.map(([path, staged, unstaged]) => ({ path, staged, unstaged })) }) as unknown as Diff

test('uncommitted changes are counted and the first files named', () => {
  expect(uncommittedText(diffOf(['a', true, false]))).toBe('1 file has uncommitted changes: a.')
  expect(uncommittedText(diffOf(['a', true, false], ['b', false, true], ['c', true, true], ['d', false, true], ['e', false, false]))).toBe(
    '4 files have uncommitted changes: a, b, c and 1 more.',
  )
})

test('committed changes are not named', () => expect(uncommittedText(diffOf(['a', false, false]))).toBeUndefined())
