import { expect, test } from 'vitest'
import { decodeClipboard } from './clipboard.ts'
import { excerpt, pasteWarning, withoutControls } from './paste.ts'

test('a short line needs no confirmation', () => expect(pasteWarning('ls -l', false)).toBeUndefined())

test('several lines need a confirmation unless the program supports bracketed paste', () => {
  expect(pasteWarning('one\ntwo\n', false)).toContain('2 lines')
  expect(pasteWarning('rm -rf x\n', false)).toContain('one line')
  expect(pasteWarning('one\ntwo\n', true)).toBeUndefined()
})

test('a long text always needs a confirmation', () => expect(pasteWarning('x'.repeat(5001), true)).toContain('5,001 characters'))

test('control characters that could end a bracketed paste are removed', () => {
  expect(withoutControls('a\x1b[201~rm\x03\u009b b\tc\r\nd')).toBe('a[201~rm b\tc\r\nd')
})

test('the excerpt of a text fits on one line', () => expect(excerpt('a\n  b ' + 'x'.repeat(200))).toMatch(/^a b x+ …$/))

test.each([
  ['c;aGVsbG8=', 'hello'],
  ['c;4pyT', '✓'],
  [';aGVsbG8=', 'hello'],
  ['c;?', undefined],
  ['c;', undefined],
  ['c;%%%', undefined],
  ['c;/w==', undefined],
  [`c;${'A'.repeat(1_000_004)}`, undefined],
])('the clipboard request %.20s is %s', (data, text) => expect(decodeClipboard(data)).toBe(text))
