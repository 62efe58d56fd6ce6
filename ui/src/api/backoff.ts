/** How long to wait before the next try: 1, 2, 4 … at most 30 seconds, spread so that pages do not come in step. */
export function backoff(attempt: number, random: () => number = Math.random): number {
  const most = Math.min(30_000, 1000 * 2 ** attempt)
  return most * (0.5 + random() / 2)
}
