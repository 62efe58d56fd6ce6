/** The part of @pierre/diffs we use, as one piece that is loaded when needed. */
export { processFile } from '@pierre/diffs'
