/** What the user can do at once about a refused request: allow a directory, or archive a session whose agent is idle. */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { Imported } from '../api/types/importing.ts'
import type { Session } from '../api/types/sessions.ts'
import { ago } from '../parts/time.ts'
import type { YesQuestion } from './view-state.svelte.ts'

/** A question to the user, and what to do before the request is sent again if the user agrees. */
export interface Remedy {
  question: YesQuestion
  apply: () => Promise<unknown>
}

/** Return the remedy for the error of a request, or undefined. */
export function remedyFor(error: unknown, sessions: readonly Session[]): Remedy | undefined {
  if (!(error instanceof ApiError)) return undefined
  const { allowRoot, setting } = (error.details ?? {}) as { allowRoot?: string; setting?: string }
  if (allowRoot) return { question: allowQuestion(allowRoot), apply: () => rest.addRoot(allowRoot) }
  const idle = setting === 'max_sessions' ? idleLongest(sessions) : undefined
  return idle && { question: archiveQuestion(error.message, idle), apply: () => rest.completeSession(idle.session.id) }
}

/** Throw the refusal of the first entry whose directory the user can allow: an import reports refusals and does not fail. */
export function requireAllowed({ left }: Imported): void {
  const refused = left.find(({ allowRoot }) => allowRoot)
  if (refused) throw new ApiError(403, 'forbidden', refused.reason, { allowRoot: refused.allowRoot })
}

/** Return the question whether sessions are allowed in a directory. */
export function allowQuestion(directory: string): YesQuestion {
  return {
    title: `Allow sessions in ${directory}?`,
    text: 'Agents and terminals will be able to work in this directory and everything below it. Bullpen asks this once for each project.',
    label: 'Allow',
  }
}

interface IdleSession {
  session: Session
  /** The time since which all of its agents are idle. */
  since: string
}

/** Return the session whose agents are idle for the longest time, or undefined if each has an agent that works or asks. */
export function idleLongest(sessions: readonly Session[]): IdleSession | undefined {
  return sessions
    .flatMap((session) => {
      const agents = session.workers.filter(({ type, state }) => type === 'agent' && (state === 'active' || state === 'spawning'))
      const since = agents.map(({ activitySince }) => activitySince).toSorted().at(-1)
      return since !== undefined && agents.every(({ activity }) => activity === 'idle') ? [{ session, since }] : []
    })
    .toSorted((a, b) => a.since.localeCompare(b.since))[0]
}

/** Return the question whether to archive the session that is idle for the longest time. */
function archiveQuestion(message: string, { session, since }: IdleSession): YesQuestion {
  return {
    title: 'Archive an idle session?',
    text: `${sentence(message)} “${session.title}” has been idle for the longest time: it finished ${ago(since, Date.now())}. Archiving ends its programs; you can continue it later.`,
    label: `Archive “${session.title}”`,
  }
}

/** Return a message of the server as a sentence. */
function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`
}
