import { expect, test } from 'vitest'
import { begin, drop, find, ready, write, type Drafts } from './comments.ts'

const NONE: Drafts = { promptId: '', comments: [] }
const one = begin(NONE, 'a.py', 'new', 3)
const id = find(one, 'a.py', 'new', 3)!.id

test('a line has one remark', () => {
  expect(begin(one, 'a.py', 'new', 3)).toBe(one)
  expect(begin(one, 'a.py', 'old', 3).comments.length).toBe(2)
})

test('only what says something is sent', () => {
  expect(ready(one)).toEqual([])
  expect(ready(write(one, id, '  why? '))).toEqual([{ path: 'a.py', side: 'new', line: 3, text: 'why?' }])
})

test('another text is another message, and none is none', () => {
  const said = write(one, id, 'why?')
  expect(said.promptId).not.toBe(one.promptId)
  expect(drop(said, id)).toEqual(NONE)
})
