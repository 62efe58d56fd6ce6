/** Return the milliseconds to wait before the next attempt: 1, 2, 4 … at most 30 seconds, with jitter so that pages do not retry in step. */
export function backoff(attempt: number, random: () => number = Math.random): number {
  const maximum = Math.min(30_000, 1000 * 2 ** attempt)
  return maximum * (0.5 + random() / 2)
}
