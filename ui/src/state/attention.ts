/** Show what sessions need from the user, and order sessions by that; the server decides it (domain/attention.py). */
import type { Attention as Decided, Session } from '../api/types/sessions.ts'
import type { Shape, Tone } from '../parts/StateMark.svelte'

/** What a session needs, the most urgent first. */
export const NEEDS = ['asking', 'error', 'done', 'working', 'idle'] as const satisfies readonly Decided['need'][]
export type Need = (typeof NEEDS)[number]

export interface Attention extends Decided {
  /** The need whose symbol is shown: a failed session keeps the error symbol after it was seen. */
  mark: Need
  label: string
}

/** The symbols and words of the needs, as on the command line (cli/text.py) except for archived sessions; `tests/golden/words/states.json` checks both. */
export const MARKS: Record<Need, { shape: Shape; tone: Tone; sign: string }> = {
  asking: { shape: 'full', tone: 'warn', sign: '●' },
  error: { shape: 'cross', tone: 'bad', sign: '✕' },
  done: { shape: 'diamond', tone: 'news', sign: '◆' },
  working: { shape: 'half', tone: 'good', sign: '◐' },
  idle: { shape: 'ring', tone: 'quiet', sign: '○' },
}
const LABELS: Record<Need, string> = { asking: 'needs input', error: 'error', done: 'done, not seen yet', working: 'working', idle: 'idle' }

/** Return how to show what a session needs; one that has ended and needs nothing shows that it is archived or has failed. */
export function attentionOf({ attention, status }: Session): Attention {
  const { need } = attention
  if (status === 'active' || need !== 'idle') return { ...attention, mark: need, label: LABELS[need] }
  return { ...attention, mark: status === 'error' ? 'error' : 'idle', label: status === 'error' ? LABELS.error : 'archived' }
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
