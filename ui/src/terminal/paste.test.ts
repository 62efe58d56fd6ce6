import { expect, test } from 'vitest'
import { decodeClipboard } from './clipboard.ts'
import { beginningOf, doubtAbout, withoutControls } from './paste.ts'

test('a short line is nobody’s doubt', () => expect(doubtAbout('ls -l', false)).toBeUndefined())

test('several lines are asked about unless the program takes them as one piece', () => {
  expect(doubtAbout('one\ntwo\n', false)).toContain('2 lines')
  expect(doubtAbout('rm -rf x\n', false)).toContain('one line')
  expect(doubtAbout('one\ntwo\n', true)).toBeUndefined()
})

test('a long text is always asked about', () => expect(doubtAbout('x'.repeat(5001), true)).toContain('5,001 characters'))

test('what would end the brackets round a paste is taken out', () => {
  expect(withoutControls('a\x1b[201~rm\x03\u009b b\tc\r\nd')).toBe('a[201~rm b\tc\r\nd')
})

test('the beginning fits a line', () => expect(beginningOf('a\n  b ' + 'x'.repeat(200))).toMatch(/^a b x+ …$/))

test.each([
  ['c;aGVsbG8=', 'hello'],
  ['c;4pyT', '✓'],
  [';aGVsbG8=', 'hello'],
  ['c;?', undefined],
  ['c;', undefined],
  ['c;%%%', undefined],
  ['c;/w==', undefined],
  [`c;${'A'.repeat(1_000_004)}`, undefined],
])('the clipboard order %.20s is %s', (data, text) => expect(decodeClipboard(data)).toBe(text))
