/** The content of the form that starts a session, its defaults, and the request made from it. */
import type { Agent } from '../api/types/agents.ts'
import type { Repository } from '../api/types/repositories.ts'
import type { NewSession, Session } from '../api/types/sessions.ts'
import type { Level } from '../sandbox/sandbox-text.ts'
import { remembered } from '../state/remembered.ts'

/** The values of the form. */
export interface StartForm {
  /** The id of the chosen repository; empty for a directory, undefined if nothing was chosen. */
  repoId: string | undefined
  /** The directory if no repository is chosen; empty for a new one. */
  directory: string
  /** Whether the session works in the repository's own directory instead of a worktree of its own. */
  inCheckout: boolean
  /** The branch of the worktree; empty for a new one with a name made from the prompt. */
  branch: string
  /** The branch at which a new branch starts; empty for the one that is checked out. */
  base: string
  /** The agent chosen for this session; empty if none was chosen. */
  agentId: string
  /** The agent chosen for an earlier session; the agent of a repository takes precedence. */
  lastAgentId: string
  prompt: string
  /** The least sandbox level of the session's agents; empty for the usual one. */
  sandbox: Level | ''
}

export const EMPTY_FORM: StartForm = { repoId: undefined, directory: '', inCheckout: false, branch: '', base: '', agentId: '', lastAgentId: '', prompt: '', sandbox: '' }

/** Return the stored content of the form. */
export const startForm = () => remembered<StartForm>('start', EMPTY_FORM)

/** Return the form that starts a session again in the same place with the same agent. */
export function formForRestart(session: Session, agentId: string | null, prompt: string): StartForm {
  const inRepository = session.repoId !== null && session.worktreeId === null
  const where = inRepository ? { repoId: session.repoId ?? '' } : { repoId: '', directory: session.locationPath }
  return { ...EMPTY_FORM, ...where, inCheckout: inRepository, agentId: agentId ?? '', prompt }
}

/** Return the request that creates the session of a form. */
export function sessionRequest(start: StartForm, agentId: string | undefined): NewSession {
  return {
    ...locationRequest(start),
    ...(agentId && { agentId }),
    ...(start.sandbox && { sandbox: start.sandbox }),
    ...(start.prompt.trim() && { title: titleFrom(start.prompt) }),
  }
}

/** Return the part of the request that says where the session is created. */
export function locationRequest(start: StartForm): NewSession {
  if (!start.repoId) return { type: 'quick', ...(start.directory.trim() && { locationPath: start.directory.trim() }) }
  if (start.inCheckout) return { type: 'worktree', repoId: start.repoId }
  const branch = start.branch.trim()
  const worktree = { mode: branch ? 'either' : 'new', ...(branch ? { branch } : { prompt: titleFrom(start.prompt) }), ...(start.base && { base: start.base }) } as const
  return { type: 'worktree', repoId: start.repoId, worktree }
}

/** Return the first line of a prompt, cut to 60 characters, as the title of its session. */
export function titleFrom(prompt: string): string {
  const line = prompt.trim().split('\n')[0] ?? ''
  return line.length > 60 ? `${line.slice(0, 57).trimEnd()}…` : line
}

/** Return the chosen repository, else the one used last, else the first; undefined if a directory was chosen or there is no repository. */
export function repositoryFor(
  chosen: string | undefined,
  repositories: readonly Repository[],
  sessions: readonly Session[],
): Repository | undefined {
  if (chosen === '') return undefined
  const used = sessions.toSorted((a, b) => b.createdAt.localeCompare(a.createdAt)).map(({ repoId }) => repoId)
  const candidates = [chosen, ...used].map((id) => repositories.find((each) => each.id === id))
  return candidates.find((each) => each !== undefined) ?? repositories[0]
}

/**
 * Return the selected agent: the chosen one, installed or not, else among the installed ones that of the repository, the
 * last chosen one, the default or the first.
 */
export function agentFor(
  { agentId, lastAgentId }: Pick<StartForm, 'agentId' | 'lastAgentId'>,
  repository: Pick<Repository, 'agentId'> | undefined,
  agents: readonly Agent[],
): Agent | undefined {
  const installed = agents.filter((agent) => agent.installed)
  const candidates = [repository?.agentId, lastAgentId].map((id) => installed.find((each) => each.id === id))
  return agents.find((each) => each.id === agentId) ?? candidates.find((each) => each !== undefined) ?? installed.find((agent) => agent.default) ?? installed[0]
}

/** Return the form after a session was started: the prompt is cleared, and the agent becomes the last chosen one. */
export function formAfterStart(start: StartForm, repository: Repository | undefined): StartForm {
  const { agentId, lastAgentId } = start
  return { ...start, prompt: '', sandbox: '', branch: '', base: '', repoId: repository ? undefined : start.repoId, agentId: '', lastAgentId: agentId || lastAgentId }
}
