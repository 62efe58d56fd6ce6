/** What the page shows, kept in the address so that a reload shows it again. */
export const SECTIONS = ['appearance', 'keys', 'agents', 'repositories', 'devices', 'tokens'] as const
export type Section = (typeof SECTIONS)[number]

export type Route =
  | { view: 'home' }
  | { view: 'new' }
  | { view: 'settings'; section: Section }
  /** `at`: a moment, in milliseconds since the epoch. */
  | { view: 'replay'; sessionId: string; at?: number }
  | { view: 'session'; sessionId: string; workerId?: string }

export function parseRoute(hash: string): Route {
  const [, view, first, second] = /^#\/([\w-]+)(?:\/([\w-]+))?(?:\/([\w-]+))?$/.exec(hash) ?? []
  if (view === 'new') return { view }
  if (view === 'settings') return { view, section: SECTIONS.find((each) => each === first) ?? 'appearance' }
  if (view === 'replay' && first) return { view, sessionId: first, ...(second && /^\d+$/.test(second) && { at: Number(second) }) }
  if (view === 'session' && first) return { view, sessionId: first, ...(second && { workerId: second }) }
  return { view: 'home' }
}

export function formatRoute(route: Route): string {
  switch (route.view) {
    case 'home':
      return '#/'
    case 'new':
      return '#/new'
    case 'settings':
      return `#/settings/${route.section}`
    case 'replay':
      return route.at === undefined ? `#/replay/${route.sessionId}` : `#/replay/${route.sessionId}/${route.at}`
    case 'session':
      return route.workerId ? `#/session/${route.sessionId}/${route.workerId}` : `#/session/${route.sessionId}`
  }
}

/** The one-time code of the address that `bullpen serve` prints. */
export function loginCode(hash: string): string | undefined {
  return /^#code=(.+)$/.exec(hash)?.[1]
}
