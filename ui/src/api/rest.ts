/** The REST calls of this page, one function for each request. */
import { call, download, postWhileClosing, upload } from './http.ts'
import type { Agents } from './types/agents.ts'
import type { Clone } from './types/clones.ts'
import type { Comments, Diff } from './types/diff.ts'
import type { DirectoryChoices, FoundRepositories } from './types/directories.ts'
import type { Events } from './types/events.ts'
import type { Listing } from './types/files.ts'
import type { LoginCode } from './types/login.ts'
import type { Imported, SavedSessions } from './types/importing.ts'
import type { Permissions, Rule, Rules } from './types/permissions.ts'
import type { Ports } from './types/ports.ts'
import type { Prompt } from './types/prompts.ts'
import type { Branches, Repositories, Repository } from './types/repositories.ts'
import type { Grant, Grants, NewGrant, RunSandbox, Sandbox } from './types/sandbox.ts'
import type { Search } from './types/search.ts'
import type { NewSession, Session, Sessions } from './types/sessions.ts'
import type { Timeline } from './types/timeline.ts'
import type { NewToken, NewTokenAnswer, ShareAnswer, Tokens } from './types/tokens.ts'
import type { Usage } from './types/usage.ts'
import type { NewWorker, Worker } from './types/workers.ts'
import type { Worktree, Worktrees } from './types/worktrees.ts'

export interface EventQuery {
  after?: number
  before?: number
  limit?: number
  types?: readonly string[]
  newest?: boolean
}

/** The sandbox of the machine; servers without limits do not list them. */
export type MachineSandbox = Sandbox & { limits?: readonly { name: string; value: number; enforcedBy: string }[] }

/** Query for the newest events, which a session shows first. */
export const LATEST = { newest: true, limit: 400 }

/** Paths that can be prefetched. */
export const paths = {
  sessions: '/sessions?limit=200',
  events: (sessionId: string, query: EventQuery) =>
    `${sessionPath(sessionId)}/events?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))}`,
}

export const rest = {
  login: (code: string, device: string) => call<{ secret: string }>('POST', '/login', { code, device }),
  loginCode: (scope: 'view' | 'operate' | 'admin') => call<LoginCode>('POST', '/login-codes', { scope }),

  search: (query: Record<string, string>) => call<Search>('GET', `/search?${new URLSearchParams(query)}`),
  usage: (query: Record<string, string>) => call<Usage>('GET', `/usage?${new URLSearchParams(query)}`),

  session: (id: string) => call<Session>('GET', sessionPath(id)),
  sessions: () => call<Sessions>('GET', paths.sessions),
  createSession: (session: NewSession) => call<Session>('POST', '/sessions', session),
  editSession: (id: string, change: { title?: string; onLastDisconnect?: 'keep' | 'terminate' }) =>
    call<Session>('PATCH', sessionPath(id), change),
  purgeSession: (id: string) => call<Session>('DELETE', `${sessionPath(id)}?purge=true`),
  completeSession: (id: string) => call<Session>('POST', `${sessionPath(id)}/complete`),
  reopenSession: (id: string) => call<Session>('POST', `${sessionPath(id)}/reopen`),
  archiveWhileClosing: (id: string) => postWhileClosing(`${sessionPath(id)}/complete`),
  leaveSession: (id: string) => postWhileClosing(`${sessionPath(id)}/leave`),
  events: (sessionId: string, query: EventQuery) => call<Events>('GET', paths.events(sessionId, query)),
  /** The time line of a session, or with `at` the state at one moment. */
  timeline: (sessionId: string, at?: number) => call<Timeline>('GET', `${sessionPath(sessionId)}/timeline${at === undefined ? '' : `?at=${at}`}`),
  /** The output of a terminal run between two offsets. */
  output: (sessionId: string, { workerId, run, after, offset }: { workerId: string; run: number; after: number; offset: number }) =>
    download(`${sessionPath(sessionId)}/workers/${encodeURIComponent(workerId)}/output?run=${run}&after=${after}&until=${offset}`),

  createWorker: (sessionId: string, worker: NewWorker) => call<Worker>('POST', `${sessionPath(sessionId)}/workers`, worker),
  restartWorker: (worker: Worker) => call<Worker>('POST', `${workerPath(worker)}/restart`),
  /** Start the login command of an agent in a new terminal of its session. */
  logIn: (worker: Worker) => call<Worker>('POST', `${workerPath(worker)}/login`),
  endWorker: (worker: Worker) => call<void>('DELETE', workerPath(worker)),

  prompt: (sessionId: string, prompt: Prompt) => call<{ seq: number; queued: boolean }>('POST', `${sessionPath(sessionId)}/prompt`, prompt),
  permit: (sessionId: string, permissionId: string, optionId: string) =>
    call<void>('POST', `${sessionPath(sessionId)}/permissions/${encodeURIComponent(permissionId)}`, { optionId }),
  answer: (sessionId: string, questionId: string, action: 'accept' | 'decline', content?: Record<string, unknown>) =>
    call<void>('POST', `${sessionPath(sessionId)}/questions/${encodeURIComponent(questionId)}`, { action, content }),
  /** Mark failures and finished turns up to `seq` as seen. */
  markSeen: (sessionId: string, seq: number) => call<void>('POST', `${sessionPath(sessionId)}/seen`, { seq }),
  permissions: (sessionId: string) => call<Permissions>('GET', `${sessionPath(sessionId)}/permissions`),

  /** The changes of a workspace. Without patches: only the branch, the files and the line counts. */
  diff: (sessionId: string, options: { workerId?: string | undefined; patches?: boolean }) =>
    call<Diff>('GET', `${sessionPath(sessionId)}/diff?${new URLSearchParams({ patches: String(options.patches ?? true), ...(options.workerId && { workerId: options.workerId }) })}`),
  commentDiff: (sessionId: string, comments: Comments) => call<{ seq: number; queued: boolean }>('POST', `${sessionPath(sessionId)}/diff/comments`, comments),
  directory: (sessionId: string, directory: string) => call<Listing>('GET', filePath(sessionId, directory)),
  file: (sessionId: string, file: string) => download(filePath(sessionId, file)),

  ports: (sessionId: string) => call<Ports>('GET', `${sessionPath(sessionId)}/ports`),

  agents: () => call<Agents>('GET', '/agents'),
  addAgent: (definition: object) => call<void>('POST', '/agents', definition),
  removeAgent: (id: string) => call<void>('DELETE', `/agents/${encodeURIComponent(id)}`),
  addRoot: (directory: string) => call('POST', '/roots', { path: directory }),
  /** The directories whose path begins with a text. */
  directories: (path: string) => call<DirectoryChoices>('GET', `/directories?${new URLSearchParams({ path })}`),
  nearbyRepositories: () => call<FoundRepositories>('GET', '/directories/repositories'),
  /** Start to clone a repository into a directory, or into the default one if that is empty. */
  clone: (url: string, into: string) => call<Clone>('POST', '/clones', { url, into }),
  cloneProgress: (id: string) => call<Clone>('GET', `/clones/${encodeURIComponent(id)}`),
  cancelClone: (id: string) => call<void>('DELETE', `/clones/${encodeURIComponent(id)}`),
  branches: (repoId: string) => call<Branches>('GET', `/repositories/${encodeURIComponent(repoId)}/branches`),
  repositories: () => call<Repositories>('GET', '/repositories'),
  addRepository: (directory: string) => call<Repository>('POST', '/repositories', { path: directory }),
  renameRepository: (id: string, name: string) => call<Repository>('PATCH', `/repositories/${encodeURIComponent(id)}`, { name }),
  removeRepository: (id: string) => call<void>('DELETE', `/repositories/${encodeURIComponent(id)}`),
  worktrees: (repoId: string) => call<Worktrees>('GET', worktreesPath(repoId)),
  /** Move a worktree to the trash. Without `force` the server refuses it if work would be lost, and names the work. */
  removeWorktree: (repoId: string, name: string, force: boolean) =>
    call<void>('DELETE', `${worktreesPath(repoId)}/${encodeURIComponent(name)}?force=${force}`),
  restoreWorktree: (repoId: string, name: string, id: string) =>
    call<Worktree>('POST', `${worktreesPath(repoId)}/${encodeURIComponent(name)}/restore`, { id }),
  rules: () => call<Rules>('GET', '/rules'),
  addRule: (rule: Omit<Rule, 'added'>) => call<Rule>('POST', '/rules', rule),
  removeRule: (name: string) => call<void>('DELETE', `/rules/${encodeURIComponent(name)}`),
  sandbox: () => call<MachineSandbox>('GET', '/sandbox'),
  /** What a run of a worker can read, write and reach. */
  runSandbox: (worker: Worker) => call<RunSandbox>('GET', `${workerPath(worker)}/sandbox`),
  grants: () => call<Grants>('GET', '/sandbox/grants'),
  grant: (grant: NewGrant) => call<Grant>('PUT', '/sandbox/grants', grant),
  removeGrant: (id: string) => call<void>('DELETE', `/sandbox/grants/${encodeURIComponent(id)}`),
  share: (sessionId: string, expiresIn: number) => call<ShareAnswer>('POST', `${sessionPath(sessionId)}/share`, { expiresIn }),
  export: (sessionId: string, format: string, redact: boolean) => download(`${sessionPath(sessionId)}/export?format=${format}&redact=${redact}`),
  importRecording: (sessionId: string, zip: Blob) => upload<Imported>(`/recordings/${encodeURIComponent(sessionId)}`, zip, 'PUT'),
  /** The sessions that agent-console has saved on the machine of the server. */
  savedSessions: () => call<SavedSessions>('GET', '/import'),
  importSessions: (sessions: unknown[]) => call<Imported>('POST', '/import', { sessions }),
  tokens: () => call<Tokens>('GET', '/tokens'),
  createToken: (token: NewToken) => call<NewTokenAnswer>('POST', '/tokens', token),
  removeToken: (id: string) => call<void>('DELETE', `/tokens/${encodeURIComponent(id)}`),
}

function sessionPath(sessionId: string): string {
  return `/sessions/${encodeURIComponent(sessionId)}`
}

function worktreesPath(repoId: string): string {
  return `/repositories/${encodeURIComponent(repoId)}/worktrees`
}

/** Encode each part of a file path; only the slashes between the parts stay. */
function filePath(sessionId: string, file: string): string {
  const parts = file.split('/').filter(Boolean).map(encodeURIComponent)
  return [`${sessionPath(sessionId)}/files`, ...parts].join('/')
}

function workerPath({ id, sessionId }: Worker): string {
  return `${sessionPath(sessionId)}/workers/${encodeURIComponent(id)}`
}
