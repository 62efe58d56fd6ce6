/** Describe the connection to the server as a colour, a label and a hint: connected, reconnecting or disconnected. */
import type { Status } from '../api/connection.ts'

const LOST_AFTER_MS = 20_000 // a lost connection counts as disconnected after this time

export interface Indicator {
  tone: 'good' | 'waiting' | 'bad'
  label: string
  hint: string
}

/** Return the indicator for a status; `lostAt` and `now` are times in milliseconds. */
export function indicatorOf(status: Status, lostAt: number | undefined, online: boolean, now: number): Indicator {
  if (status === 'open') return { tone: 'good', label: 'Connected', hint: 'The page receives every change immediately.' }
  if (!online) return { tone: 'bad', label: 'Disconnected', hint: 'This device has no network. What you type is kept and sent when the network is back.' }
  if (status === 'closed' && lostAt !== undefined)
    return { tone: 'bad', label: 'Disconnected', hint: 'The server closed the connection. Reload the page to try again.' }
  if (lostAt !== undefined && now - lostAt > LOST_AFTER_MS)
    return { tone: 'bad', label: 'Disconnected', hint: 'The server does not answer. Agents keep running, and the page tries again by itself. Click to try now.' }
  return { tone: 'waiting', label: lostAt === undefined ? 'Connecting' : 'Reconnecting', hint: 'What you type is kept and sent when the connection is back.' }
}
