/** The shapes of the server's answers that this page reads. */

export type SessionStatus = 'active' | 'completed' | 'cancelled' | 'error'
export type WorkerState = 'spawning' | 'active' | 'exited' | 'failed' | 'terminated'
export type Activity = 'unknown' | 'active' | 'idle' | 'asking'

export interface Worker {
  id: string
  sessionId: string
  type: string
  name: string
  state: WorkerState
  activity: Activity
  run: number
  exitCode: number | null
  signal: number | null
  error: string | null
}

export interface Session {
  id: string
  type: string
  title: string
  status: SessionStatus
  live: boolean
  locationPath: string
  createdAt: string
  updatedAt: string
  lastSeq: number
  workers: Worker[]
}

/** What happened in a session; `seq` has no gaps. */
export interface SessionEvent {
  seq: number
  type: string
  workerId: string | null
  timestamp: string
  data: Record<string, unknown>
}

export interface Agent {
  id: string
  name: string
  installed: boolean
  default: boolean
}

export interface Queue {
  count: number
  paused: boolean
}

export interface Size {
  cols: number
  rows: number
}
