/** Prefetch the data of the first view while the scripts load; main.ts imports this module first. */
import { prefetch } from './api/http.ts'
import { LATEST, paths } from './api/rest.ts'
import { loginCode, parseRoute, sharedSession } from './state/route.ts'

const { hash } = location
const route = parseRoute(hash)
if (!loginCode(hash) && !sharedSession(hash)) {
  prefetch(paths.sessions)
  if (route.view === 'session') prefetch(paths.events(route.sessionId, LATEST))
}
