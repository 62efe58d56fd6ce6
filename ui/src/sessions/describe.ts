/** How a session is named and drawn in lists. */
import type { Session, Worker } from '../api/types.ts'

export interface Mark {
  shape: string
  tone: 'good' | 'warn' | 'bad' | 'quiet'
  label: string
}

/** What needs a person comes before what goes on by itself. */
export function markOf(session: Session): Mark {
  if (session.status === 'error' || session.workers.some((worker) => worker.state === 'failed'))
    return { shape: '✕', tone: 'bad', label: 'error' }
  if (session.workers.some((worker) => alive(worker) && worker.activity === 'asking'))
    return { shape: '●', tone: 'warn', label: 'needs input' }
  if (session.workers.some((worker) => alive(worker) && worker.activity === 'active'))
    return { shape: '◐', tone: 'good', label: 'working' }
  return { shape: '○', tone: 'quiet', label: session.live ? 'idle' : session.status === 'active' ? 'not running' : session.status }
}

/** Whether the page has a pane for it. */
export function isShown(worker: Worker): boolean {
  return worker.type === 'terminal' || worker.type === 'agent'
}

export function age(iso: string, now: number): string {
  const minutes = Math.max(0, Math.floor((now - Date.parse(iso)) / 60_000))
  if (minutes < 1) return 'now'
  if (minutes < 60) return `${minutes} min`
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h`
  return `${Math.floor(minutes / 1440)} d`
}

function alive(worker: Worker): boolean {
  return worker.state === 'spawning' || worker.state === 'active'
}
