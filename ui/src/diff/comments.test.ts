import { expect, test } from 'vitest'
import { addComment, removeComment, findComment, sendableComments, editComment, type Drafts } from './comments.ts'

const NONE: Drafts = { promptId: '', comments: [] }
const withComment = addComment(NONE, 'a.py', 'new', 3)
const id = findComment(withComment, 'a.py', 'new', 3)!.id

test('a line has at most one comment', () => {
  expect(addComment(withComment, 'a.py', 'new', 3)).toBe(withComment)
  expect(addComment(withComment, 'a.py', 'old', 3).comments.length).toBe(2)
})

test('empty comments are not sent', () => {
  expect(sendableComments(withComment)).toEqual([])
  expect(sendableComments(editComment(withComment, id, '  why? '))).toEqual([{ path: 'a.py', side: 'new', line: 3, text: 'why?' }])
})

test('changed comments are a new message, and no comments are no message', () => {
  const edited = editComment(withComment, id, 'why?')
  expect(edited.promptId).not.toBe(withComment.promptId)
  expect(removeComment(edited, id)).toEqual(NONE)
})
