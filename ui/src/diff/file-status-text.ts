/** Text for changed files: status, staging and path. */

const STATUS: Record<string, { letter: string; tone: 'good' | 'bad' | 'warn' | 'news' }> = {
  added: { letter: 'A', tone: 'good' },
  untracked: { letter: 'A', tone: 'good' },
  deleted: { letter: 'D', tone: 'bad' },
  renamed: { letter: 'R', tone: 'news' },
  copied: { letter: 'C', tone: 'news' },
}

/** Return the letter, the colour and the name of a file's status. */
export function statusOf(status: string): { letter: string; tone: 'good' | 'bad' | 'warn' | 'news'; label: string } {
  return { ...(STATUS[status] ?? { letter: 'M', tone: 'warn' as const }), label: status }
}

/** Return whether a change is staged, partly staged or not staged, as text; undefined if it is neither. */
export function stagingText({ staged, unstaged }: { staged: boolean; unstaged: boolean }): string | undefined {
  if (staged && unstaged) return 'partly staged'
  return staged ? 'staged' : unstaged ? 'not staged' : undefined
}

/** Split a path into its directory, with the final slash, and its name. */
export function splitPath(path: string): { directory: string; name: string } {
  const end = path.lastIndexOf('/') + 1
  return { directory: path.slice(0, end), name: path.slice(end) }
}
