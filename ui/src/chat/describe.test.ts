import { expect, test } from 'vitest'
import { detailOf, titleOf } from './describe.ts'

test('a call is named by its title, else by its kind', () => {
  expect([titleOf({ toolCallId: 't', title: 'Edit x', kind: 'edit' }), titleOf({ toolCallId: 't', kind: 'edit' })]).toEqual(['Edit x', 'edit'])
  expect(titleOf(undefined)).toBe('A tool')
})

test('what a tool is given is shown whole, whatever its title says', () => {
  expect(detailOf({ toolCallId: 't', title: 'List files', rawInput: { command: 'rm -rf x' } })).toContain('"command": "rm -rf x"')
})

test('a diff shows every line that goes and comes', () => {
  const content = [{ type: 'diff', path: 'a.txt', oldText: 'one\n', newText: 'two\nthree\n' }]
  expect(detailOf({ toolCallId: 't', content })).toBe('a.txt\n- one\n+ two\n+ three')
})

test('content of any shape is shown plainly', () => {
  const content = [{ type: 'content', content: { type: 'text', text: 'hello' } }, { type: 'hologram', x: 1 }, null]
  expect(detailOf({ toolCallId: 't', content })).toBe('hello\n{"type":"hologram","x":1}')
})
