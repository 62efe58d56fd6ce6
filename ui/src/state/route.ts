/** What the page shows, kept in the address so that a reload shows it again. */
export const SECTIONS = ['appearance', 'keys', 'notifications', 'agents', 'repositories', 'devices', 'tokens'] as const
export type Section = (typeof SECTIONS)[number]

export type Route =
  | { view: 'home' }
  | { view: 'new' }
  | { view: 'inbox' }
  | { view: 'usage' }
  | { view: 'search'; words: string }
  | { view: 'settings'; section: Section }
  /** `at`: a moment, in milliseconds since the epoch. */
  | { view: 'replay'; sessionId: string; at?: number }
  /** `at`: the seq of a moment that is to be shown. */
  | { view: 'session'; sessionId: string; workerId?: string; at?: number }

export function parseRoute(hash: string): Route {
  const words = /^#\/search(?:\/([^/]*))?$/.exec(hash)
  if (words) return { view: 'search', words: decoded(words[1] ?? '') }
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
      return route.words ? `#/search/${encodeURIComponent(route.words)}` : '#/search'
    case 'settings':
      return `#/settings/${route.section}`
    case 'replay':
      return route.at === undefined ? `#/replay/${route.sessionId}` : `#/replay/${route.sessionId}/${route.at}`
    case 'session':
      return ['#/session', route.sessionId, route.workerId, route.workerId && route.at].filter((part) => part !== undefined).join('/')
  }
}

function decoded(words: string): string {
  try {
    return decodeURIComponent(words)
  } catch {
    return '' // somebody cut the address
  }
}

/** What `bullpen share` prints: one session, and the token that shows it. */
export function sharedSession(hash: string): { sessionId: string; token: string } | undefined {
  const [, sessionId, token] = /^#share=([\w-]+)\/([\w-]+)$/.exec(hash) ?? []
  return sessionId && token ? { sessionId, token } : undefined
}

/** The one-time code of the address that `bullpen serve` prints. */
export function loginCode(hash: string): string | undefined {
  return /^#code=(.+)$/.exec(hash)?.[1]
}
