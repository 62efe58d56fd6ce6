/** Prefetch the data of the first view while the scripts load; main.ts imports this module first. */
import { askAhead } from './api/http.ts'
import { LATEST, paths } from './api/rest.ts'
import { loginCode, parseRoute, sharedSession } from './state/route.ts'

const { hash } = location
const route = parseRoute(hash)
if (!loginCode(hash) && !sharedSession(hash)) {
  askAhead(paths.sessions)
  if (route.view === 'session') askAhead(paths.events(route.sessionId, LATEST))
}
