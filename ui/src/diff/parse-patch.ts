/** Parse the patch of one file. The parser is loaded when the first diff is shown. */
import type { FileDiffMetadata } from '@pierre/diffs'

export async function parsePatch(patch: string): Promise<FileDiffMetadata | undefined> {
  const { processFile } = await import('./pierre-diffs.ts')
  return processFile(patch, { isGitDiff: patch.startsWith('diff --git') })
}
