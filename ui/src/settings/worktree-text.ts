/** Describe the state of a worktree, and what would be lost with it. */
import type { Worktree } from '../api/types/worktrees.ts'

const MAX_NAMES = 3

/** Return the state of a worktree, such as "uncommitted: notes.md, tiles.py · 2 commits not pushed". */
export function worktreeText({ problem, dirty, changes, ahead, behind }: Worktree): string {
  if (problem) return problem
  const names = changes.slice(0, MAX_NAMES).map(pathOf).join(', ')
  const more = changes.length > MAX_NAMES ? ` and ${changes.length - MAX_NAMES} more` : ''
  return [
    dirty ? `uncommitted: ${names}${more}` : dirty === null ? '' : 'everything is committed',
    ahead ? `${commits(ahead)} not pushed` : '',
    behind ? `${commits(behind)} not pulled` : '',
  ].filter(Boolean).join(' · ')
}

/** What the server names when it refuses to remove a worktree. */
export interface Loss {
  changes?: string[]
  commits?: string[]
  unfinished?: string | null
}

/** Return a sentence that names what only this worktree has. */
export function lossText({ changes = [], commits: own = [], unfinished }: Loss): string {
  const parts = [
    changes.length && `uncommitted changes (${listed(changes.map(pathOf))})`,
    own.length && `commits that no other branch has (${listed(own)})`,
    unfinished && `an unfinished ${unfinished}`,
  ].filter(Boolean)
  return `It has ${parts.join(' and ')}. It can be restored from this page for 7 days, with all its files.`
}

function listed(names: readonly string[]): string {
  return [...names.slice(0, MAX_NAMES), ...(names.length > MAX_NAMES ? [`${names.length - MAX_NAMES} more`] : [])].join(', ')
}

/** Return the path in a line of `git status --short`. */
function pathOf(change: string): string {
  return change.slice(3)
}

function commits(count: number): string {
  return count === 1 ? '1 commit' : `${count} commits`
}
