import { expect, test } from 'vitest'
import type { Worktree } from '../api/types/worktrees.ts'
import { lossText, worktreeText } from './worktree-text.ts'

const worktree = (change: Partial<Worktree>): Worktree => ({ name: 'a', path: '/a', branch: 'a', isMain: false, dirty: false, changes: [], ahead: 0, behind: 0, problem: null, ...change })

test('a worktree names its uncommitted files and its distance to the upstream', () => {
  expect(worktreeText(worktree({}))).toBe('everything is committed')
  expect(worktreeText(worktree({ dirty: true, changes: [' M a', '?? b c'], ahead: 1, behind: 2 }))).toBe('uncommitted: a, b c · 1 commit not pushed · 2 commits not pulled')
  expect(worktreeText(worktree({ dirty: true, changes: [' M a', ' M b', ' M c', ' M d'] }))).toBe('uncommitted: a, b, c and 1 more')
  expect(worktreeText(worktree({ dirty: null, problem: 'the directory does not exist' }))).toBe('the directory does not exist')
})

test('a refusal names the work that only the worktree has', () => {
  const text = lossText({ changes: [' M a'], commits: ['1234567 begin'], unfinished: 'merge' })
  expect(text).toContain('It has uncommitted changes (a) and commits that no other branch has (1234567 begin) and an unfinished merge.')
})
