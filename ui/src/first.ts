/** Asks for what the page shows first while the rest of it is still being read: main.ts imports this before all else. */
import { askAhead } from './api/http.ts'
import { LATEST, paths } from './api/rest.ts'
import { loginCode, parseRoute, sharedSession } from './state/route.ts'

const { hash } = location
const route = parseRoute(hash)
if (!loginCode(hash) && !sharedSession(hash)) {
  askAhead(paths.sessions)
  if (route.view === 'session') askAhead(paths.events(route.sessionId, LATEST))
}
