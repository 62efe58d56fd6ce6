import { expect, test } from 'vitest'
import { aSession } from '../testing/things.ts'
import { againOf, branchFor, FRESH, orderOf, titleOf } from './start.ts'

test('a directory, or nothing at all, is a quick session', () => {
  expect(orderOf(FRESH, undefined)).toEqual({ type: 'quick' })
  expect(orderOf({ ...FRESH, directory: ' /srv/x ' }, 'demo')).toEqual({ type: 'quick', locationPath: '/srv/x', agentId: 'demo' })
})

test('a repository is a worktree session, with a branch of its own when wanted', () => {
  const start = { ...FRESH, repoId: 'r', prompt: 'Fix the build' }
  expect(orderOf(start, 'demo')).toEqual({ type: 'worktree', repoId: 'r', agentId: 'demo', title: 'Fix the build' })
  expect(orderOf({ ...start, worktree: true }, 'demo')).toMatchObject({ branch: 'bullpen/fix-the-build' })
  expect(orderOf({ ...start, worktree: true, branch: 'mine' }, 'demo')).toMatchObject({ branch: 'mine' })
})

test('a long prompt gives a short title and a short branch', () => {
  const prompt = `Überprüfe ${'lange Sätze '.repeat(20)}\nand more`
  expect(titleOf(prompt).length).toBeLessThanOrEqual(60)
  expect(branchFor(prompt)).toMatch(/^bullpen\/[a-z0-9-]+$/)
  expect(branchFor('!!!')).toBe('bullpen/work')
})

test('a session is started once more where it was', () => {
  expect(againOf(aSession({ repoId: 'r' }), 'demo', 'go')).toEqual({ ...FRESH, repoId: 'r', agentId: 'demo', prompt: 'go' })
  const inWorktree = aSession({ repoId: 'r', worktreeId: 'fix', locationPath: '/src/atlas.worktrees/fix' })
  expect(againOf(inWorktree, null, '')).toEqual({ ...FRESH, directory: '/src/atlas.worktrees/fix' })
})
