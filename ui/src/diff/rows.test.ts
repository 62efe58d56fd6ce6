import { processFile } from '@pierre/diffs'
import { expect, test } from 'vitest'
import { piecesOf } from './code-pieces.ts'
import { splitRows, unifiedRows, type Row } from './rows.ts'

const PATCH = `diff --git a/a.py b/a.py
index 1111111..2222222 100644
--- a/a.py
+++ b/a.py
@@ -1,4 +1,5 @@
 import os
-name = "one"
+name = "two"
+more = 1
 print(name)
 end
@@ -20,2 +21,1 @@ def last():
 keep
-gone
`

const file = processFile(PATCH, { isGitDiff: true })!
const short = (row: Row): string =>
  row.kind === 'gap' ? `~ ${row.text}` : [row.old, row.new].map((cell) => (cell ? `${cell.line}${cell.changed ? '!' : ' '}${cell.text}` : '-')).join(' | ')

test('in two columns, corresponding lines are beside each other', () => {
  expect(splitRows(file).map(short)).toEqual([
    '1 import os | 1 import os',
    '2!name = "one" | 2!name = "two"',
    '- | 3!more = 1',
    '3 print(name) | 4 print(name)',
    '4 end | 5 end',
    '~ 15 unchanged lines · def last():',
    '20 keep | 21 keep',
    '21!gone | -',
  ])
})

test('in one column, removed lines come before added lines', () => {
  expect(unifiedRows(splitRows(file)).slice(1, 4).map(short)).toEqual(['2!name = "one" | -', '- | 2!name = "two"', '- | 3!more = 1'])
})

test('changed words are marked and keep their syntax colours', () => {
  const row = splitRows(file)[1]!
  if (row.kind !== 'lines' || !row.new) throw new Error('no line')
  expect(row.new.spans).toEqual([[8, 11]])
  const tokens = [{ text: 'name ', name: undefined }, { text: '= ', name: 'keyword' }, { text: '"two"', name: 'string' }]
  expect(piecesOf(row.new.text, tokens, row.new.spans)).toEqual([
    { text: 'name ', name: undefined, marked: false },
    { text: '= ', name: 'keyword', marked: false },
    { text: '"', name: 'string', marked: false },
    { text: 'two', name: 'string', marked: true },
    { text: '"', name: 'string', marked: false },
  ])
})

test('syntax colours of another text are ignored', () => {
  expect(piecesOf('now', [{ text: 'then', name: 'keyword' }], [])).toEqual([{ text: 'now', name: undefined, marked: false }])
})
