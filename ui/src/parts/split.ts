/** Move a bar between two children of a split; neither gets smaller than the minimum. */

export const MIN_SHARE = 0.1 // share of the whole

/** Return the sizes after the bar behind child number `bar` moved by a share of the whole. */
export function moveBar(sizes: readonly number[], bar: number, by: number): number[] {
  const [first, second] = [sizes[bar] ?? 0, sizes[bar + 1] ?? 0]
  const move = Math.min(Math.max(by, MIN_SHARE - first), second - MIN_SHARE)
  if (first + second < 2 * MIN_SHARE) return [...sizes]
  return sizes.map((size, n) => (n === bar ? first + move : n === bar + 1 ? second - move : size))
}
