/** Determine whether a session needs the user, why and since when, and order sessions by that; used by all lists and the tab icon. */
import type { InboxItem } from '../api/types/inbox.ts'
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import type { Shape, Tone } from '../parts/StateMark.svelte'
import { failureText, endReasonText } from './reasons.ts'

/** What a session needs, the most urgent first. */
export const NEEDS = ['asking', 'error', 'done', 'working', 'idle'] as const
export type Need = (typeof NEEDS)[number]

export interface Attention {
  need: Need
  /** The need whose symbol is shown: a failed session keeps the error symbol after it was seen. */
  mark: Need
  /** Texts for the user: the state, its reason and its time. */
  label: string
  why: string
  since: string
}

/** The server's reason for an idle agent that has had no turn since its start (workers/conversation_change.py). */
const NEVER_PROMPTED = 'waits for a prompt'

/** The symbols of the states, as on the command line (cli/text.py); `tests/golden/words/states.json` checks both. */
export const MARKS: Record<Need, { shape: Shape; tone: Tone; sign: string }> = {
  asking: { shape: 'full', tone: 'warn', sign: '●' },
  error: { shape: 'cross', tone: 'bad', sign: '✕' },
  done: { shape: 'diamond', tone: 'news', sign: '◆' },
  working: { shape: 'half', tone: 'good', sign: '◐' },
  idle: { shape: 'ring', tone: 'quiet', sign: '○' },
}

/**
 * Return what a session needs. `items` are the inbox items of this session; an item disappears when it is seen in any
 * browser. Turns typed into a terminal have no inbox item; they count as seen if they ended before `seen`, the time at
 * which this browser last showed the session.
 */
export function attentionOf(session: Session, items: readonly InboxItem[], seen: string): Attention {
  const alive = session.workers.filter((worker) => worker.state === 'spawning' || worker.state === 'active')
  const asking = alive.find((worker) => worker.activity === 'asking')
  if (asking) return { ...attentionTo('asking', 'needs input', asking), ...openRequests(items) }
  const failed = session.workers.find((worker) => worker.state === 'failed' && !worker.owner) // the agent handles failures of its own commands
  if (failed && session.status === 'active') return { ...attentionTo('error', 'error', failed), why: failureText(failed, failed.error ?? 'failed') }
  const failure = items.find(({ kind }) => kind === 'failed')
  if (failure) return { need: 'error', mark: 'error', label: 'error', why: failureText(workerOf(session, failure), failure.text), since: failure.createdAt }
  const done = alive.find((worker) => hasFinishedTurn(worker) && isUnseen(worker, items, seen))
  const working = alive.find((worker) => worker.type === 'agent' && (worker.activity === 'active' || worker.state === 'spawning'))
  if (done && !working) return attentionTo('done', 'done, not seen yet', done)
  if (working) return attentionTo('working', 'working', working)
  return restingAttention(session, alive[0])
}

/** Return whether a worker is an idle agent that has finished at least one turn. */
function hasFinishedTurn(worker: Worker): boolean {
  return worker.type === 'agent' && worker.state === 'active' && worker.activity === 'idle' && worker.activityWhy !== NEVER_PROMPTED
}

/** Return the texts of the open requests, and the time of the oldest; earlier requests may have been answered. */
function openRequests(items: readonly InboxItem[]): Partial<Attention> {
  const open = items.filter(({ seq }) => seq === null)
  const [first] = open.map(({ createdAt }) => createdAt).toSorted()
  return first === undefined ? {} : { why: open.map(({ text }) => text).join(' · '), since: first }
}

function workerOf(session: Session, { workerId }: InboxItem): Worker | undefined {
  return session.workers.find(({ id }) => id === workerId)
}

/** Return whether the result of a worker was not seen: it has an inbox item, or its terminal changed after `seen`. */
function isUnseen(worker: Worker, items: readonly InboxItem[], seen: string): boolean {
  return items.some(({ workerId }) => workerId === worker.id) || (worker.agentKind === 'pty' && worker.activitySince > seen)
}

function attentionTo(need: Need, label: string, worker: Worker): Attention {
  return { need, mark: need, label, why: worker.activityWhy, since: worker.activitySince }
}

/** Return the state of a session that needs nothing: idle, or how it ended. */
function restingAttention(session: Session, worker: Worker | undefined): Attention {
  if (session.status !== 'active')
    return { need: 'idle', mark: session.status === 'error' ? 'error' : 'idle', label: session.status, why: endReasonText(session.endReason), since: session.updatedAt }
  if (!worker) return { need: 'idle', mark: 'idle', label: 'idle', why: 'nothing runs', since: session.updatedAt }
  return attentionTo('idle', 'idle', worker)
}

export interface Group {
  key: string
  name: string
  path: string
  sessions: Session[]
}

/** Group sessions by repository, else by directory. Within a group: by need, then newest first, so that working sessions do not move. */
export function groupSessions(
  sessions: readonly Session[],
  repositories: readonly { id: string; name: string; path: string }[],
  needOf: (session: Session) => Need,
): Group[] {
  const groups = new Map<string, Group>()
  for (const session of sortedByNeed(sessions, needOf)) {
    const repository = repositories.find((each) => each.id === session.repoId) ?? repositories.find(({ path }) => path === session.locationPath)
    const path = repository?.path ?? session.locationPath
    const key = repository?.id ?? path
    const group = groups.get(key) ?? { key, name: repository?.name ?? baseName(path), path, sessions: [] }
    group.sessions.push(session)
    groups.set(key, group)
  }
  return [...groups.values()]
}

/** Return the sessions by need, then newest first. */
export function sortedByNeed(sessions: readonly Session[], needOf: (session: Session) => Need): Session[] {
  const rank = (session: Session) => NEEDS.indexOf(needOf(session))
  return sessions.toSorted((a, b) => rank(a) - rank(b) || b.createdAt.localeCompare(a.createdAt))
}

/** Return the last part of a path. */
export function baseName(path: string): string {
  return path.split('/').findLast(Boolean) ?? path
}
