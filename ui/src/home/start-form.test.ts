import { expect, test } from 'vitest'
import { anAgent, aRepository, aSession } from '../testing/test-records.ts'
import { formForRestart, agentFor, EMPTY_FORM, sessionRequest, repositoryFor, formAfterStart, titleFrom } from './start-form.ts'

test('a directory, or no location, starts a quick session', () => {
  expect(sessionRequest(EMPTY_FORM, undefined)).toEqual({ type: 'quick' })
  expect(sessionRequest({ ...EMPTY_FORM, directory: ' /srv/x ' }, 'demo')).toEqual({ type: 'quick', locationPath: '/srv/x', agentId: 'demo' })
})

test('a repository starts a session in a new worktree, unless its own directory or a branch is chosen', () => {
  const start = { ...EMPTY_FORM, repoId: 'r', prompt: 'Fix the build' }
  const place = { type: 'worktree', repoId: 'r', agentId: 'demo', title: 'Fix the build' }
  expect(sessionRequest(start, 'demo')).toEqual({ ...place, worktree: { mode: 'new', prompt: 'Fix the build' } })
  expect(sessionRequest({ ...start, inCheckout: true }, 'demo')).toEqual(place)
  expect(sessionRequest({ ...start, branch: ' mine ', base: 'main' }, 'demo')).toEqual({ ...place, worktree: { mode: 'either', branch: 'mine', base: 'main' } })
})

test('a long prompt gives a short title', () => {
  const prompt = `Überprüfe ${'lange Sätze '.repeat(20)}\nand more`
  expect(titleFrom(prompt).length).toBeLessThanOrEqual(60)
})

test('a session is started again in the same place', () => {
  expect(formForRestart(aSession({ repoId: 'r' }), 'demo', 'go')).toEqual({ ...EMPTY_FORM, repoId: 'r', inCheckout: true, agentId: 'demo', prompt: 'go' })
  const inWorktree = aSession({ repoId: 'r', worktreeId: 'fix', locationPath: '/src/atlas.worktrees/fix' })
  expect(formForRestart(inWorktree, null, '')).toEqual({ ...EMPTY_FORM, repoId: '', directory: '/src/atlas.worktrees/fix' })
})

test('the default is the repository used last, else the first', () => {
  const repositories = ['a', 'b'].map((id) => aRepository({ id }))
  const sessions = [
    aSession({ id: '1', repoId: 'b', createdAt: '2026-01-02T00:00:00.000Z' }),
    aSession({ id: '2', repoId: 'a', createdAt: '2026-01-01T00:00:00.000Z' }),
    aSession({ id: '3', createdAt: '2026-01-03T00:00:00.000Z' }),
    aSession({ id: '4', repoId: 'forgotten', createdAt: '2026-01-04T00:00:00.000Z' }),
  ]
  expect(repositoryFor(undefined, repositories, sessions)?.id).toBe('b')
  expect(repositoryFor(undefined, repositories, [])?.id).toBe('a')
  expect(repositoryFor(undefined, [], sessions)).toBeUndefined()
})

test('a chosen repository or directory is used as long as it exists', () => {
  const repositories = ['a', 'b'].map((id) => aRepository({ id }))
  const sessions = [aSession({ repoId: 'b' })]
  expect(repositoryFor('a', repositories, sessions)?.id).toBe('a')
  expect(repositoryFor('', repositories, sessions)).toBeUndefined()
  expect(repositoryFor('forgotten', repositories, sessions)?.id).toBe('b')
})

test('the agent is the chosen one, else that of the repository, else the last chosen one, else the default', () => {
  const agents = [anAgent({ id: 'a' }), anAgent({ id: 'b' }), anAgent({ id: 'c' }), anAgent({ id: 'd', default: true })]
  const [of, without] = [aRepository({ agentId: 'b' }), aRepository()]
  expect(agentFor({ agentId: 'a', lastAgentId: 'c' }, of, agents)?.id).toBe('a')
  expect(agentFor({ agentId: '', lastAgentId: 'c' }, of, agents)?.id).toBe('b')
  expect(agentFor({ agentId: '', lastAgentId: 'c' }, without, agents)?.id).toBe('c')
  expect(agentFor(EMPTY_FORM, without, agents)?.id).toBe('d')
  expect(agentFor(EMPTY_FORM, undefined, agents.slice(0, 2))?.id).toBe('a')
})

test('an agent that is not installed is selected only if the user chooses it', () => {
  const agents = [anAgent({ id: 'a', installed: false }), anAgent({ id: 'b', default: true })]
  expect(agentFor({ agentId: '', lastAgentId: 'a' }, aRepository({ agentId: 'a' }), agents)?.id).toBe('b')
  expect(agentFor({ agentId: 'a', lastAgentId: '' }, undefined, agents)?.id).toBe('a')
  expect(agentFor(EMPTY_FORM, undefined, agents.slice(0, 1))).toBeUndefined()
})

test('a choice of an agent applies to one session only', () => {
  const after = formAfterStart({ ...EMPTY_FORM, repoId: 'r', agentId: 'a', prompt: 'go', branch: 'mine', base: 'main', inCheckout: true }, aRepository())
  expect(after).toEqual({ ...EMPTY_FORM, inCheckout: true, lastAgentId: 'a' })
  expect(formAfterStart({ ...EMPTY_FORM, repoId: '', directory: '/srv/x', lastAgentId: 'a' }, undefined)).toEqual({ ...EMPTY_FORM, repoId: '', directory: '/srv/x', lastAgentId: 'a' })
})
