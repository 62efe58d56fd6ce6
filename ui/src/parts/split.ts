/** How a bar between two places moves: what one gains the other loses, and none gets too small to use. */
export const SMALLEST = 0.1

export function moveBar(sizes: readonly number[], bar: number, by: number): number[] {
  const [first, second] = [sizes[bar] ?? 0, sizes[bar + 1] ?? 0]
  const move = Math.min(Math.max(by, SMALLEST - first), second - SMALLEST)
  if (first + second < 2 * SMALLEST) return [...sizes]
  return sizes.map((size, n) => (n === bar ? first + move : n === bar + 1 ? second - move : size))
}
