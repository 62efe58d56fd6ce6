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
  workers: Worker[]
}

export interface Size {
  cols: number
  rows: number
}
