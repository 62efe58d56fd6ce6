/** Which terminal the page shows, kept in the address so that a reload shows it again. */
export interface Route {
  sessionId: string
  workerId?: string
}

export function parseRoute(hash: string): Route | undefined {
  const [, sessionId, workerId] = /^#\/session\/([\w-]+)(?:\/([\w-]+))?$/.exec(hash) ?? []
  if (!sessionId) return undefined
  return workerId ? { sessionId, workerId } : { sessionId }
}

export function formatRoute({ sessionId, workerId }: Route): string {
  return workerId ? `#/session/${sessionId}/${workerId}` : `#/session/${sessionId}`
}

/** The one-time code of the address that `bullpen serve` prints. */
export function loginCode(hash: string): string | undefined {
  return /^#code=(.+)$/.exec(hash)?.[1]
}
