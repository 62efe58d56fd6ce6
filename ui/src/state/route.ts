/** Parse and format the route of the page, which is the fragment of its address. */
export const SECTIONS = ['appearance', 'keys', 'notifications', 'agents', 'rules', 'sandbox', 'repositories', 'worktrees', 'shares', 'devices', 'tokens', 'transfer'] as const
export type Section = (typeof SECTIONS)[number]

export type Route =
  | { view: 'home' }
  | { view: 'new' }
  | { view: 'inbox' }
  | { view: 'usage' }
  | { view: 'search'; query: string }
  | { view: 'settings'; section: Section }
  /** `at`: the shown time, in milliseconds since the epoch. */
  | { view: 'replay'; sessionId: string; at?: number }
  /** `at`: the seq of the entry to scroll to. */
  | { view: 'session'; sessionId: string; workerId?: string; at?: number }

/** Return the route of a fragment; anything unknown is the home page. */
export function parseRoute(hash: string): Route {
  const match = /^#\/search(?:\/([^/]*))?$/.exec(hash)
  if (match) return { view: 'search', query: decoded(match[1] ?? '') }
  const [, view, first, second, at] = /^#\/([\w-]+)(?:\/([\w-]+))?(?:\/([\w-]+))?(?:\/(\d{1,15}))?$/.exec(hash) ?? []
  if (view === 'new' || view === 'inbox' || view === 'usage') return { view }
  if (view === 'settings') return { view, section: SECTIONS.find((each) => each === first) ?? 'appearance' }
  if (view === 'replay' && first) return { view, sessionId: first, ...(second && /^\d+$/.test(second) && { at: Number(second) }) }
  if (view === 'session' && first) return { view, sessionId: first, ...(second && { workerId: second }), ...(at && { at: Number(at) }) }
  return { view: 'home' }
}

export function formatRoute(route: Route): string {
  switch (route.view) {
    case 'home':
      return '#/'
    case 'new':
    case 'inbox':
    case 'usage':
      return `#/${route.view}`
    case 'search':
      return route.query ? `#/search/${encodeURIComponent(route.query)}` : '#/search'
    case 'settings':
      return `#/settings/${route.section}`
    case 'replay':
      return route.at === undefined ? `#/replay/${route.sessionId}` : `#/replay/${route.sessionId}/${route.at}`
    case 'session':
      return ['#/session', route.sessionId, route.workerId, route.workerId && route.at].filter((part) => part !== undefined).join('/')
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return '' // the address is truncated
  }
}

/** Return the session and the token of a share link, as `bullpen share` prints it. */
export function sharedSession(hash: string): { sessionId: string; token: string } | undefined {
  const [, sessionId, token] = /^#share=([\w-]+)\/([\w-]+)$/.exec(hash) ?? []
  return sessionId && token ? { sessionId, token } : undefined
}

/** Return the one-time login code in the hash of an address that `bullpen serve` printed, or undefined. */
export function loginCode(hash: string): string | undefined {
  return /^#code=(.+)$/.exec(hash)?.[1]
}
