/** What the page knows of the house, and does in it: who is in, what there is, what is shown. */
import { Connection, socketAddress, type Status } from '../api/connection.ts'
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import { keepSecret } from '../api/secret.ts'
import type { Agent } from '../api/types/agents.ts'
import type { InboxItem } from '../api/types/inbox.ts'
import type { Repository } from '../api/types/repositories.ts'
import type { NewSession, Session } from '../api/types/sessions.ts'
import type { NewWorker, Worker } from '../api/types/workers.ts'
import { deviceName } from '../parts/device.ts'
import { attentionOf, type Attention } from './attention.ts'
import { fold, type DashboardMessage } from './dashboard.ts'
import { formatRoute, loginCode, parseRoute, type Route } from './route.ts'
import { forgetOthers, see, seenAt, startSeeing } from './seen.ts'

export class Page {
  entrance: 'knocking' | 'inside' | 'outside' = $state('knocking')
  status: Status = $state('closed')
  /** When the connection was lost, until it is back. */
  lostAt: number | undefined = $state()
  sessions: readonly Session[] = $state.raw([])
  agents: readonly Agent[] = $state.raw([])
  repositories: readonly Repository[] = $state.raw([])
  /** Before that nobody can say which sessions belong together. */
  repositoriesKnown = $state(false)
  /** What waits for a person, the most urgent first. */
  inbox: readonly InboxItem[] = $state.raw([])
  inboxKnown = $state(false)
  /** Whether everything above has been told at least once: before that nothing is empty, only unknown. */
  ready = $state(false)
  problem: string | undefined = $state()
  /** The directory in which the last attempt was refused because the owner has not allowed sessions there yet. */
  rootToAllow: string | undefined = $state()
  busy = $state(false)
  route: Route = $state.raw(parseRoute(location.hash))

  readonly session = $derived.by(() => {
    const { route } = this
    return route.view === 'session' ? this.sessions.find((session) => session.id === route.sessionId) : undefined
  })

  #unanswered = false // the last problem was that nobody answers; true also when a person has dismissed it
  readonly #lookedAt = new Set<string>() // items of the inbox

  readonly #dashboard = new Connection({
    address: () => socketAddress('/dashboard'),
    opened: () => {},
    message: (data) => this.#told(JSON.parse(data as string)),
    status: (status, closeCode) => this.#became(status, closeCode),
  })

  async start(): Promise<void> {
    const code = loginCode(location.hash)
    if (code) await this.#login(code)
    if (!(await this.#knock())) return
    startSeeing()
    this.#dashboard.open()
    await Promise.all([this.loadAgents(), this.loadRepositories()])
    this.ready = true
  }

  attention(session: Session): Attention {
    const news = this.inbox.filter((item) => item.sessionId === session.id && !this.#lookedAt.has(item.id))
    return attentionOf(session, news, seenAt(session.id))
  }

  /** The address changed under us: the back button, or a link of ours. */
  routed(): void {
    this.route = parseRoute(location.hash)
    this.problem = undefined
  }

  /** `beside` stays at this place of the history: one tab more is no step to go back. */
  show(route: Route, beside = false): void {
    if (!beside) {
      location.hash = formatRoute(route)
    } else if (formatRoute(route) !== location.hash) {
      history.replaceState(history.state, '', formatRoute(route))
      this.route = route
    }
  }

  /** The network or the person is back. */
  nudge(): void {
    this.#dashboard.nudge()
    this.look()
    void this.#lookAround()
  }

  /** What is on the screen is seen, unless nobody looks at the screen. */
  look(): void {
    if (!this.session || document.visibilityState !== 'visible') return
    see(this.session)
    for (const item of this.inbox) if (item.sessionId === this.session.id) this.#lookAt(item)
  }

  /** What happened leaves the inbox when a person says so, or has its session on the screen. */
  seen(item: InboxItem): Promise<boolean> {
    return this.attempt(async () => rest.seen(item.sessionId, item.seq ?? 0))
  }

  /** A session that ended so long ago that it is not in the list. */
  async know(sessionId: string): Promise<boolean> {
    if (this.sessions.some(({ id }) => id === sessionId)) return true
    return this.attempt(async () => this.#tell(await rest.session(sessionId)))
  }

  /** R12: a page that goes says so, for a session that ends with its last viewer. */
  leave(): void {
    if (this.session?.status === 'active') rest.leaveSession(this.session.id)
  }

  dismiss(): void {
    this.problem = undefined
  }

  loadAgents(): Promise<boolean> {
    return this.attempt(async () => void (this.agents = (await rest.agents()).agents))
  }

  async loadRepositories(): Promise<boolean> {
    const loaded = await this.attempt(async () => void (this.repositories = (await rest.repositories()).repositories))
    this.repositoriesKnown = true
    return loaded
  }

  /** Allows sessions in a directory, from now on. */
  allowRoot(directory: string): Promise<boolean> {
    return this.attempt(async () => void (await rest.addRoot(directory)))
  }

  /** A new session, shown at once; its first prompt goes with it when there is one. */
  startSession(wanted: NewSession, prompt: string, promptId: string): Promise<boolean> {
    return this.attempt(async () => {
      const session = await rest.createSession(wanted)
      this.#tell(session)
      if (prompt) await rest.prompt(session.id, { text: prompt, promptId })
      this.show({ view: 'session', sessionId: session.id })
    })
  }

  /** A new session with one terminal, shown at once. */
  startTerminal(wanted: NewSession): Promise<boolean> {
    return this.attempt(async () => {
      const session = await rest.createSession(wanted)
      this.#tell(session)
      await this.#addWorker(session.id, { type: 'terminal' })
    })
  }

  addWorker(session: Session, worker: NewWorker): Promise<boolean> {
    return this.attempt(() => this.#addWorker(session.id, worker))
  }

  restart(worker: Worker): Promise<boolean> {
    return this.attempt(async () => void (await rest.restartWorker(worker)))
  }

  /** Opens what logs a person in to the agent of a worker. */
  logIn(worker: Worker): Promise<boolean> {
    return this.attempt(async () => this.show({ view: 'session', sessionId: worker.sessionId, workerId: (await rest.logIn(worker)).id }))
  }

  endWorkers(workers: readonly Worker[]): Promise<boolean> {
    return this.attempt(async () => void (await Promise.all(workers.map((worker) => rest.endWorker(worker)))))
  }

  rename(session: Session, title: string): Promise<boolean> {
    return this.attempt(async () => this.#tell(await rest.editSession(session.id, { title })))
  }

  endWithLastViewer(session: Session, terminate: boolean): Promise<boolean> {
    return this.attempt(async () => this.#tell(await rest.editSession(session.id, { onLastDisconnect: terminate ? 'terminate' : 'keep' })))
  }

  complete(session: Session): Promise<boolean> {
    return this.attempt(async () => this.#tell(await rest.completeSession(session.id)))
  }

  end(session: Session): Promise<boolean> {
    return this.attempt(async () => this.#tell(await rest.cancelSession(session.id)))
  }

  purge(session: Session): Promise<boolean> {
    return this.attempt(async () => {
      await rest.purgeSession(session.id)
      if (this.session?.id === session.id) this.show({ view: 'home' })
      this.#told({ type: 'removed', sessionId: session.id })
    })
  }

  /** Does it, and keeps the server's sentence when it refuses. */
  async attempt(action: () => Promise<void>): Promise<boolean> {
    this.busy = true
    this.problem = undefined
    this.rootToAllow = undefined
    try {
      await action()
      return true
    } catch (error) {
      this.refused(error)
      return false
    } finally {
      this.busy = false
    }
  }

  #lookAt(item: InboxItem): void {
    if (item.seq === null || this.#lookedAt.has(item.id)) return
    this.#lookedAt.add(item.id)
    rest.seen(item.sessionId, item.seq).catch(() => this.#lookedAt.delete(item.id)) // the next look tries again
  }

  async #addWorker(sessionId: string, wanted: NewWorker): Promise<void> {
    const worker = await rest.createWorker(sessionId, wanted)
    this.show({ view: 'session', sessionId, workerId: worker.id })
  }

  /** Others add repositories too, and people log in elsewhere; without a word when it fails, as nobody asked. */
  async #lookAround(): Promise<void> {
    if (!this.ready || document.visibilityState !== 'visible') return
    await Promise.all([
      rest.repositories().then(({ repositories }) => (this.repositories = repositories)),
      rest.agents().then(({ agents }) => (this.agents = agents)),
    ]).catch(() => {})
  }

  #tell(session: Session): void {
    this.#told({ type: 'session', session })
  }

  #told(message: DashboardMessage): void {
    if (message.type === 'inbox') [this.inbox, this.inboxKnown] = [message.items, true]
    this.sessions = fold(this.sessions, message)
    if (message.type === 'sessions') forgetOthers(this.sessions)
    if (message.type === 'session' && this.#isNew(message.session.repoId)) void this.#lookAround()
    this.look()
  }

  #isNew(repoId: string | null): boolean {
    return repoId !== null && !this.repositories.some(({ id }) => id === repoId)
  }

  async #login(code: string): Promise<void> {
    history.replaceState(null, '', location.pathname) // a used code has no place in the history
    this.route = parseRoute('')
    await this.attempt(async () => keepSecret((await rest.login(code, deviceName(navigator.userAgent))).secret))
  }

  /** Ask for something only those inside get; a server that is away for a moment keeps nobody out. */
  async #knock(): Promise<boolean> {
    try {
      const { sessions } = await rest.sessions()
      this.sessions = fold([], { type: 'sessions', sessions })
    } catch (error) {
      if (isRefusal(error)) this.entrance = 'outside'
    }
    if (this.entrance === 'knocking') this.entrance = 'inside'
    return this.entrance === 'inside'
  }

  #became(status: Status, closeCode?: number): void {
    this.status = status
    if (status === 'open') this.#back()
    else if (status !== 'connecting') this.lostAt ??= Date.now()
    if (status === 'closed' && closeCode !== undefined) this.entrance = 'outside'
    // A refused upgrade looks to us like a dead server; only REST can tell which it was.
    if (status === 'waiting') void this.#knock().then((inside) => inside || this.#dashboard.close())
  }

  /** The server answers: what only said that it does not is settled, and what could not be loaded is. */
  #back(): void {
    this.lostAt = undefined
    if (!this.#unanswered) return
    this.#unanswered = false
    this.problem = undefined
    if (this.ready) void this.loadAgents().then(() => this.loadRepositories())
  }

  /** Says what went wrong, in the server's sentence. */
  refused(error: unknown): void {
    if (!(error instanceof ApiError)) throw error
    this.#unanswered = error.passes
    if (error.status === 401 && this.entrance === 'inside') this.entrance = 'outside'
    this.problem = error.message
    this.rootToAllow = (error.details as { allowRoot?: string } | undefined)?.allowRoot
  }
}

/** 401 without a login we know of, 403 when the cookie is there and the secret is not. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 401 || error.status === 403)
}
