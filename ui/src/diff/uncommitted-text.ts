/** Describe the uncommitted changes of a workspace in one sentence that names some files. */
import type { Diff } from '../api/types/diff.ts'

const MAX_NAMES = 3

/** Return a sentence such as "2 files have uncommitted changes: a.py, b.py.", or undefined if all changes are committed. */
export function uncommittedText({ files }: Diff): string | undefined {
  const paths = files.filter(({ staged, unstaged }) => staged || unstaged).map(({ path }) => path)
  if (!paths.length) return undefined
  const names = paths.slice(0, MAX_NAMES).join(', ')
  const more = paths.length > MAX_NAMES ? ` and ${paths.length - MAX_NAMES} more` : ''
  return `${paths.length === 1 ? '1 file has' : `${paths.length} files have`} uncommitted changes: ${names}${more}.`
}
