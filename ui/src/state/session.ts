/**
 * Fold the events of a session into its snapshot; the counterpart of `domain/snapshot.py`, checked by the same golden
 * files. Snapshots are immutable, events out of order are refused, and times stay strings as in the protocol.
 */
import type { SessionEvent } from '../api/types/events.ts'
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import { foldConversation, EMPTY_CONVERSATION, type Conversation } from './conversation.ts'
import { EMPTY as EMPTY_QUEUE, foldQueue, type Queue } from './queue.ts'
import { workerEndText } from './reasons.ts'

type Status = Session['status']
type State = Worker['state']
type Activity = Worker['activity']

export type WorkerSnapshot = Readonly<Omit<Worker, 'sessionId' | 'status'>>

export type Snapshot = Readonly<Omit<Session, 'agentStatus' | 'attention' | 'live' | 'workers'>> & {
  readonly workers: Readonly<Record<string, WorkerSnapshot>>
  readonly conversations: Readonly<Record<string, Conversation>>
  readonly queue: Queue
}

/** The event cannot follow: the stream has a gap, or the state table does not allow the event. */
export class Conflict extends Error {}

const EPOCH = new Date(0).toISOString()
const ACTIVITIES = new Set(['unknown', 'active', 'idle', 'asking'])
const END_STATUSES = new Set(['completed', 'cancelled', 'error'])

const WORKER_TRANSITIONS: Record<State, Record<string, State>> = {
  spawning: { worker_ready: 'active', worker_failed: 'failed', worker_terminated: 'terminated' },
  active: { worker_exited: 'exited', worker_failed: 'failed', worker_terminated: 'terminated' },
  exited: { worker_spawning: 'spawning', worker_terminated: 'terminated' },
  failed: { worker_spawning: 'spawning', worker_terminated: 'terminated' },
  terminated: { worker_spawning: 'spawning' },
}

/** Return the snapshot before the first event. */
export function emptySession(id: string): Snapshot {
  return {
    id,
    type: 'quick',
    title: '',
    status: 'active',
    endReason: null,
    metadata: {},
    repoId: null,
    worktreeId: null,
    locationPath: '',
    onLastDisconnect: 'keep',
    startedBy: null,
    sandbox: null,
    createdAt: EPOCH,
    updatedAt: EPOCH,
    lastSeq: 0,
    workers: {},
    conversations: {},
    queue: EMPTY_QUEUE,
  }
}

/** Return the snapshot after one more event, or throw `Conflict`. */
export function fold(session: Snapshot, event: SessionEvent): Snapshot {
  if (event.seq !== session.lastSeq + 1) throw new Conflict(`event ${event.seq} cannot follow ${session.lastSeq}`)
  return { ...apply(session, event), lastSeq: event.seq, updatedAt: event.timestamp }
}

export function isAlive(worker: Pick<WorkerSnapshot, 'state'>): boolean {
  return worker.state === 'spawning' || worker.state === 'active'
}

/** Return the field `status` of a worker, made from its state and activity; `idle` without a worker. */
export function workerStatus(worker: Pick<WorkerSnapshot, 'state' | 'activity'> | undefined): string {
  if (!worker) return 'idle'
  const { state, activity } = worker
  if (state === 'spawning') return 'starting'
  if (state === 'active') return activity === 'active' || activity === 'asking' ? 'running' : 'connected'
  return state === 'failed' ? 'error' : 'exited'
}

/** Return a snapshot as the JSON of a session in REST answers and socket messages. */
export function sessionJson({ workers, conversations: _, queue: __, ...session }: Snapshot): Record<string, unknown> {
  const all = Object.values(workers)
  return {
    ...session,
    agentStatus: workerStatus(all.find(({ type, state }) => type === 'agent' && state !== 'terminated')),
    live: all.some(isAlive),
    workers: all.map((worker) => ({ ...worker, sessionId: session.id, status: workerStatus(worker) })),
  }
}

function apply(session: Snapshot, event: SessionEvent): Snapshot {
  const { data } = event
  switch (event.type) {
    case 'session_start':
      return {
        ...session,
        type: data.sessionType as Session['type'],
        title: String(data.title),
        repoId: nullable(data.repoId),
        worktreeId: nullable(data.worktreeId),
        locationPath: String(data.locationPath),
        onLastDisconnect: asDisconnectPolicy(data.onLastDisconnect) ?? 'keep',
        startedBy: nullable(data.startedBy),
        sandbox: asSandboxLevel(data.sandbox),
        createdAt: event.timestamp,
      }
    case 'session_changed':
      return {
        ...session,
        title: nullable(data.title) ?? session.title,
        onLastDisconnect: asDisconnectPolicy(data.onLastDisconnect) || session.onLastDisconnect,
      }
    case 'session_end':
      return withEnd(session, String(data.status), String(data.reason))
    case 'session_reopened':
      return reopened(session)
  }
  if (event.workerId !== null) return withWorker(session, event, event.workerId)
  const queue = foldQueue(session.queue, event)
  return queue === session.queue ? session : { ...session, queue }
}

function withEnd(session: Snapshot, status: string, reason: string): Snapshot {
  if (session.status !== 'active' || !END_STATUSES.has(status))
    throw new Conflict(`a session that is ${session.status} cannot become ${status}`)
  return { ...session, status: status as Status, endReason: reason, metadata: { ...session.metadata, reason } }
}

function reopened(session: Snapshot): Snapshot {
  if (session.status === 'active') throw new Conflict('a session that is active cannot become active')
  const { reason: _, ...metadata } = session.metadata
  return { ...session, status: 'active', endReason: null, metadata }
}

function withWorker(session: Snapshot, event: SessionEvent, id: string): Snapshot {
  const before = session.workers[id]
  if (!before && event.type !== 'worker_spawning') throw new Conflict(`no worker ${id} in session ${session.id}`)
  const worker = before ? withEvent(before, event) : newWorker(event, id)
  const workers = { ...session.workers, [id]: worker }
  if (worker.type !== 'agent') return { ...session, workers }
  const conversation = foldConversation(session.conversations[id] ?? EMPTY_CONVERSATION, event)
  return { ...session, workers, conversations: { ...session.conversations, [id]: conversation } }
}

function newWorker({ data, role, timestamp }: SessionEvent, id: string): WorkerSnapshot {
  return {
    id,
    type: String(data.workerType),
    name: String(data.name),
    role: role || String(data.name),
    agentId: nullable(data.agentId),
    agentKind: nullable(data.agentKind) as WorkerSnapshot['agentKind'],
    workspace: String(data.workspace),
    filePath: nullable(data.filePath),
    url: nullable(data.url),
    owner: null,
    state: 'spawning',
    activity: 'unknown',
    activityWhy: 'just started',
    activitySince: timestamp,
    run: Number(data.run),
    pid: null,
    exitCode: null,
    signal: null,
    error: null,
    sandbox: asSandboxLevel(data.sandbox),
    createdAt: timestamp,
    lastActiveAt: timestamp,
  }
}

function withEvent(before: WorkerSnapshot, event: SessionEvent): WorkerSnapshot {
  const worker = { ...before, lastActiveAt: event.timestamp }
  switch (event.type) {
    case 'worker_activity':
      return {
        ...worker,
        activity: ACTIVITIES.has(String(event.data.activity)) ? (event.data.activity as Activity) : 'unknown',
        activityWhy: String(event.data.why),
        activitySince: event.timestamp,
      }
    case 'worker_command':
      return { ...worker, owner: nullable(event.data.owner) }
    case 'worker_spawning':
    case 'worker_ready':
    case 'worker_exited':
    case 'worker_failed':
    case 'worker_terminated':
      return withTransition(worker, event)
    default:
      return worker
  }
}

/** Return a worker after a state transition, or throw `Conflict` if the table does not allow it. */
function withTransition(before: WorkerSnapshot, { type, timestamp, data }: SessionEvent): WorkerSnapshot {
  const state = WORKER_TRANSITIONS[before.state][type]
  if (!state) throw new Conflict(`a worker that is ${before.state} cannot take ${type}`)
  const worker: WorkerSnapshot = { ...before, state, activity: 'unknown', activitySince: timestamp }
  const end = { exitCode: numeric(data.exitCode), signal: nullable(data.signal) }
  switch (type) {
    case 'worker_spawning':
      return {
        ...worker,
        run: Number(data.run),
        pid: null,
        exitCode: null,
        signal: null,
        error: null,
        sandbox: asSandboxLevel(data.sandbox),
        activityWhy: 'starting',
      }
    case 'worker_ready':
      return { ...worker, pid: numeric(data.pid), activityWhy: 'started' }
    case 'worker_exited':
      return { ...worker, ...end, activityWhy: 'ended' }
    case 'worker_failed':
      return { ...worker, ...end, error: String(data.error), activityWhy: 'failed' }
    default:
      return { ...worker, activityWhy: workerEndText(String(data.reason)) }
  }
}

function nullable(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function numeric(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}

function asDisconnectPolicy(value: unknown): Session['onLastDisconnect'] | null {
  return nullable(value) as Session['onLastDisconnect'] | null
}

/** Return the sandbox level in an event, or null without one. It is not checked: the server has done that. */
function asSandboxLevel(value: unknown): WorkerSnapshot['sandbox'] {
  return nullable(value) as WorkerSnapshot['sandbox']
}
