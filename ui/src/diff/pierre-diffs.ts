/** Re-export the used part of @pierre/diffs, so that it is a separate file that is loaded on demand. */
export { processFile } from '@pierre/diffs'
