/** What a person filled in to start a session, and the order it comes to. */
import type { Agent } from '../api/types/agents.ts'
import type { Repository } from '../api/types/repositories.ts'
import type { NewSession, Session } from '../api/types/sessions.ts'
import { remembered } from '../state/remembered.ts'

export interface Start {
  /** The id of a repository; empty for a directory, undefined while nobody chose. */
  repoId: string | undefined
  directory: string
  /** A branch of its own in a worktree of its own; empty for the repository as it is. */
  branch: string
  worktree: boolean
  /** The agent chosen for this session; empty while nobody chose. */
  agentId: string
  /** The agent chosen for one before: a repository that has its own knows better. */
  lastAgentId: string
  prompt: string
}

export const FRESH: Start = { repoId: undefined, directory: '', branch: '', worktree: false, agentId: '', lastAgentId: '', prompt: '' }

/** What is filled in now, for whoever shows the form. */
export const filledIn = () => remembered<Start>('start', FRESH)

/** A session that has ended, once more: in the same place, with the same agent. */
export function againOf(session: Session, agentId: string | null, prompt: string): Start {
  const inRepository = session.repoId !== null && session.worktreeId === null
  const where = inRepository ? { repoId: session.repoId ?? '' } : { repoId: '', directory: session.locationPath }
  return { ...FRESH, ...where, agentId: agentId ?? '', prompt }
}

export function orderOf(start: Start, agentId: string | undefined): NewSession {
  return {
    ...place(start),
    ...(agentId && { agentId }),
    ...(start.prompt.trim() && { title: titleOf(start.prompt) }),
  }
}

export function place(start: Start): NewSession {
  if (!start.repoId) return { type: 'quick', ...(start.directory.trim() && { locationPath: start.directory.trim() }) }
  if (!start.worktree) return { type: 'worktree', repoId: start.repoId }
  return { type: 'worktree', repoId: start.repoId, branch: start.branch.trim() || branchFor(start.prompt) }
}

/** The first line of a prompt, short enough for a list. */
export function titleOf(prompt: string): string {
  const line = prompt.trim().split('\n')[0] ?? ''
  return line.length > 60 ? `${line.slice(0, 57).trimEnd()}…` : line
}

/** A branch name a person would recognise the prompt by. */
export function branchFor(prompt: string): string {
  const words = titleOf(prompt).toLowerCase().normalize('NFKD').replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-+|-+$/g, '')
  return `bullpen/${words.split('-').slice(0, 5).join('-') || 'work'}`
}

/** The repository that is meant when nobody chose: the one used last. A directory is meant where there is none. */
export function repositoryFor(
  chosen: string | undefined,
  repositories: readonly Repository[],
  sessions: readonly Session[],
): Repository | undefined {
  if (chosen === '') return undefined
  const used = sessions.toSorted((a, b) => b.createdAt.localeCompare(a.createdAt)).map(({ repoId }) => repoId)
  const found = [chosen, ...used].map((wanted) => repositories.find(({ id }) => id === wanted))
  return found.find((each) => each !== undefined) ?? repositories[0]
}

/** The agent that is meant: the chosen one, the repository's, the one chosen before, the default; of those that are here. */
export function agentFor(
  { agentId, lastAgentId }: Pick<Start, 'agentId' | 'lastAgentId'>,
  repository: Pick<Repository, 'agentId'> | undefined,
  agents: readonly Agent[],
): Agent | undefined {
  const installed = agents.filter((agent) => agent.installed)
  const found = [agentId, repository?.agentId, lastAgentId].map((wanted) => installed.find(({ id }) => id === wanted))
  return found.find((each) => each !== undefined) ?? installed.find((agent) => agent.default) ?? installed[0]
}

/** What is left in the form when a session was started from it: where and with whom is remembered, not chosen. */
export function startedFrom(start: Start, repository: Repository | undefined): Start {
  const { agentId, lastAgentId } = start
  return { ...start, prompt: '', branch: '', repoId: repository ? undefined : start.repoId, agentId: '', lastAgentId: agentId || lastAgentId }
}
