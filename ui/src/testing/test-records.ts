/** Sessions, workers and other records with default values, for tests that set only a few fields. */
import type { Agent } from '../api/types/agents.ts'
import type { InboxItem } from '../api/types/inbox.ts'
import type { Repository } from '../api/types/repositories.ts'
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'

const THEN = '2026-01-01T00:00:00.000Z'

export function aWorker(change: Partial<Worker> = {}): Worker {
  return {
    id: 'w',
    sessionId: 's',
    type: 'agent',
    name: 'Agent',
    role: 'agent',
    agentId: 'demo',
    agentKind: 'acp',
    workspace: '/home/me',
    filePath: null,
    url: null,
    owner: null,
    state: 'active',
    activity: 'idle',
    activityWhy: 'turn ended',
    activitySince: THEN,
    status: 'connected',
    run: 1,
    pid: 1,
    exitCode: null,
    signal: null,
    error: null,
    sandbox: null,
    createdAt: THEN,
    lastActiveAt: THEN,
    ...change,
  }
}

export function aSession(change: Partial<Session> = {}): Session {
  const id = change.id ?? 's'
  return {
    id,
    type: 'quick',
    title: id,
    status: 'active',
    agentStatus: 'idle',
    endReason: null,
    metadata: {},
    live: true,
    repoId: null,
    worktreeId: null,
    locationPath: '/home/me',
    onLastDisconnect: 'keep',
    startedBy: null,
    sandbox: null,
    createdAt: THEN,
    updatedAt: THEN,
    lastSeq: 1,
    attention: { need: 'idle', why: 'nothing runs', since: THEN },
    workers: [],
    ...change,
  }
}

export function anItem(change: Partial<InboxItem> = {}): InboxItem {
  return {
    id: 'w.1',
    kind: 'finished',
    sessionId: 's',
    sessionTitle: 's',
    workerId: 'w',
    role: 'agent',
    agentId: 'demo',
    repoId: null,
    createdAt: THEN,
    text: 'end_turn',
    seq: 1,
    toolCall: null,
    options: [],
    form: null,
    url: null,
    refused: null,
    ...change,
  }
}

export function aRepository(change: Partial<Repository> = {}): Repository {
  const id = change.id ?? 'r'
  return {
    id,
    path: `/src/${id}`,
    name: id,
    agentId: null,
    env: [],
    setup: '',
    cleanup: '',
    sandbox: null,
    createdAt: THEN,
    updatedAt: THEN,
    queue: {},
    ...change,
  }
}

export function anAgent(change: Partial<Agent> = {}): Agent {
  const id = change.id ?? 'demo'
  return {
    id,
    name: id,
    description: '',
    kind: 'acp',
    command: [id],
    env: {},
    passEnv: [],
    offer: { fs: true, terminal: true },
    state: [],
    sandbox: null,
    added: false,
    installed: true,
    missing: null,
    installHint: '',
    loggedIn: 'none',
    loginCommand: [],
    default: false,
    ...change,
  }
}
