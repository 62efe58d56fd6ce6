/** What a session's metadata tells of its worktree: the branch and how many lines differ. */
export interface Changes {
  branch: string | undefined
  added: number
  removed: number
}

export function isTarget(metadata: Record<string, unknown>): Changes | undefined {
  const { branch, added, removed } = metadata
  if (typeof branch !== 'string') return undefined
  return { branch, added: count(added), removed: count(removed) }
}

function count(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
