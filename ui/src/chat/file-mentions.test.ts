import { expect, test } from 'vitest'
import { completeMention, matchingFiles, mentionAt } from './file-mentions.ts'

test('the mention at the caret begins with an at sign that begins a word', () => {
  const text = 'see @src/a.py and (@"my no'
  expect(mentionAt(text, text.length)).toEqual({ start: 19, query: 'my no' })
  expect(mentionAt(text, 8)).toEqual({ start: 4, query: 'src' })
  expect(mentionAt('@', 1)).toEqual({ start: 0, query: '' })
})

test.each(['me@example', '@done ', 'no mention', '@"closed" '])('there is no mention at the end of %s', (text) => {
  expect(mentionAt(text, text.length)).toBeUndefined()
})

test('a match in the name of a file comes before one in its directory, and short paths before long ones', () => {
  const names = ['src/app/main.py', 'src/main/app.py', 'docs/readme.md', 'app.py']
  expect(matchingFiles('app', names)).toEqual(['app.py', 'src/main/app.py', 'src/app/main.py'])
  expect(matchingFiles('rme', names)).toEqual(['docs/readme.md'])
  expect(matchingFiles('', names)).toHaveLength(4)
  expect(matchingFiles('xyz', names)).toEqual([])
})

test('a completed mention replaces what was typed, in quotes if the path has spaces', () => {
  const typed = 'see @ap and'
  expect(completeMention(typed, 7, { start: 4, query: 'ap' }, 'src/app.py')).toEqual({ text: 'see @src/app.py and', caret: 16 })
  expect(completeMention('@"my', 4, { start: 0, query: 'my' }, 'my notes.txt')).toEqual({ text: '@"my notes.txt" ', caret: 16 })
})
