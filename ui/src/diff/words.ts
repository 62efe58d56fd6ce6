/** The state of a changed file as a letter and a word. */
const STATUS: Record<string, { letter: string; tone: 'good' | 'bad' | 'warn' | 'news' }> = {
  added: { letter: 'A', tone: 'good' },
  untracked: { letter: 'A', tone: 'good' },
  deleted: { letter: 'D', tone: 'bad' },
  renamed: { letter: 'R', tone: 'news' },
  copied: { letter: 'C', tone: 'news' },
}

export function statusOf(status: string): { letter: string; tone: 'good' | 'bad' | 'warn' | 'news'; word: string } {
  return { ...(STATUS[status] ?? { letter: 'M', tone: 'warn' as const }), word: status }
}

/** Where a change stands on its way into a commit. */
export function placeOf({ staged, unstaged }: { staged: boolean; unstaged: boolean }): string | undefined {
  if (staged && unstaged) return 'partly staged'
  return staged ? 'staged' : unstaged ? 'not staged' : undefined
}

export function splitPath(path: string): { directory: string; name: string } {
  const end = path.lastIndexOf('/') + 1
  return { directory: path.slice(0, end), name: path.slice(end) }
}
