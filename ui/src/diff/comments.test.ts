import { expect, test } from 'vitest'
import { begin, drop, find, ready, write, type Drafts } from './comments.ts'

const NONE: Drafts = { promptId: '', comments: [] }
const one = begin(NONE, 'a.py', 'new', 3)
const id = find(one, 'a.py', 'new', 3)!.id

test('a line has at most one comment', () => {
  expect(begin(one, 'a.py', 'new', 3)).toBe(one)
  expect(begin(one, 'a.py', 'old', 3).comments.length).toBe(2)
})

test('empty comments are not sent', () => {
  expect(ready(one)).toEqual([])
  expect(ready(write(one, id, '  why? '))).toEqual([{ path: 'a.py', side: 'new', line: 3, text: 'why?' }])
})

test('changed comments are a new message, and no comments are no message', () => {
  const said = write(one, id, 'why?')
  expect(said.promptId).not.toBe(one.promptId)
  expect(drop(said, id)).toEqual(NONE)
})
