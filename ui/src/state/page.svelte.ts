/** The central state of the application: login, sessions, agents, repositories, inbox and current route, and the actions on them. */
import { Connection, socketAddress, type Status } from '../api/connection.ts'
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import { storeSecret } from '../api/credentials.ts'
import type { Agent } from '../api/types/agents.ts'
import type { InboxItem } from '../api/types/inbox.ts'
import type { Repository } from '../api/types/repositories.ts'
import type { NewSession, Session } from '../api/types/sessions.ts'
import type { NewWorker, Worker } from '../api/types/workers.ts'
import { deviceName } from '../parts/device-name.ts'
import { attentionOf, type Attention } from './attention.ts'
import { fold, type DashboardMessage } from './dashboard.ts'
import { remedyFor } from './remedies.ts'
import { formatRoute, loginCode, parseRoute, type Route } from './route.ts'
import { canStartAgain } from './tab-workers.ts'
import type { YesQuestion } from './view-state.svelte.ts'

/** The state of one page load; created by main.ts and shared by `useApp`. */
export class Page {
  access: 'unknown' | 'granted' | 'denied' = $state('unknown')
  status: Status = $state('closed')
  /** The time at which the connection was lost; undefined while it is open. */
  lostAt: number | undefined = $state()
  sessions: readonly Session[] = $state.raw([])
  agents: readonly Agent[] = $state.raw([])
  repositories: readonly Repository[] = $state.raw([])
  /** Whether the repositories were loaded; before that the sessions cannot be grouped. */
  repositoriesKnown = $state(false)
  /** The items that wait for the user, the most urgent first. */
  inbox: readonly InboxItem[] = $state.raw([])
  inboxKnown = $state(false)
  /** Whether all lists were loaded once; before that an empty list means "unknown". */
  ready = $state(false)
  problem: string | undefined = $state()
  busy = $state(false)
  route: Route = $state.raw(parseRoute(location.hash))

  readonly session = $derived.by(() => {
    const { route } = this
    return route.view === 'session' ? this.sessions.find((session) => session.id === route.sessionId) : undefined
  })

  readonly #ask: (question: YesQuestion) => Promise<boolean>
  #unanswered = false // whether the last problem was a missing answer; stays true when the user dismisses the message
  readonly #seenItems = new Set<string>() // ids of inbox items

  readonly #dashboard = new Connection({
    address: () => socketAddress('/dashboard'),
    opened: () => {},
    message: (data) => this.#receive(JSON.parse(data as string)),
    status: (status, closeCode) => this.#statusChanged(status, closeCode),
  })

  /** `ask` shows a question to the user and returns whether the user agreed. */
  constructor(ask: (question: YesQuestion) => Promise<boolean>) {
    this.#ask = ask
  }

  /** Log in with a code in the address, check the login, and connect to the server. */
  async start(): Promise<void> {
    const code = loginCode(location.hash)
    if (code) await this.#login(code)
    if (!(await this.#checkLogin())) return
    this.#dashboard.open()
    await Promise.all([this.loadAgents(), this.loadRepositories()])
    this.ready = true
  }

  /** Return whether and why a session needs the user. */
  attention(session: Session): Attention {
    return attentionOf(session)
  }

  /** Read the route from the address, which the back button or a link changed. */
  readRoute(): void {
    this.route = parseRoute(location.hash)
    this.problem = undefined
  }

  /** Go to a route. `replace` replaces the history entry, so that choosing another tab adds no step for the back button. */
  show(route: Route, replace = false): void {
    if (!replace) {
      location.hash = formatRoute(route)
    } else if (formatRoute(route) !== location.hash) {
      history.replaceState(history.state, '', formatRoute(route))
      this.route = route
    }
  }

  /** Reconnect now, reload the lists and mark what is shown as seen, because the network or the user is back. */
  retryNow(): void {
    this.#dashboard.retryNow()
    this.markShownSeen()
    void this.#reloadLists()
  }

  /** Mark the shown session and its inbox items as seen, unless the page is hidden. */
  markShownSeen(): void {
    if (!this.session || document.visibilityState !== 'visible') return
    for (const item of this.inbox) if (item.sessionId === this.session.id) this.#markItemSeen(item)
  }

  /** Mark an inbox item as seen. */
  markSeen(item: InboxItem): Promise<boolean> {
    return this.attempt(async () => rest.markSeen(item.sessionId, item.seq ?? 0))
  }

  /** Load a session that is not in the list, because it ended long ago. */
  async ensureListed(sessionId: string): Promise<boolean> {
    if (this.sessions.some(({ id }) => id === sessionId)) return true
    return this.attempt(async () => this.#setSession(await rest.session(sessionId)))
  }

  /** Tell the server that this page is closing, for sessions that end with their last viewer. */
  announceLeaving(): void {
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

  /** Create a session, send its first prompt if there is one, and show it. */
  startSession(request: NewSession, prompt: string, promptId: string): Promise<boolean> {
    return this.attempt(async () => {
      const session = await rest.createSession(request)
      this.#setSession(session)
      if (prompt) await rest.prompt(session.id, { text: prompt, promptId })
      this.show({ view: 'session', sessionId: session.id })
    })
  }

  /** Create a session with one terminal and show it. */
  startTerminal(request: NewSession): Promise<boolean> {
    return this.attempt(async () => {
      const session = await rest.createSession(request)
      this.#setSession(session)
      await this.#addWorker(session.id, { type: 'terminal' })
    })
  }

  addWorker(session: Session, worker: NewWorker): Promise<boolean> {
    return this.attempt(() => this.#addWorker(session.id, worker))
  }

  restart(worker: Worker): Promise<boolean> {
    return this.attempt(async () => void (await rest.restartWorker(worker)))
  }

  /** Open a terminal with the login command of a worker's agent. */
  logIn(worker: Worker): Promise<boolean> {
    return this.attempt(async () => this.show({ view: 'session', sessionId: worker.sessionId, workerId: (await rest.logIn(worker)).id }))
  }

  /** Stop an agent or a program. It keeps its tab and can be started again. */
  stop(worker: Worker): Promise<boolean> {
    return this.attempt(() => rest.endWorker(worker))
  }

  rename(session: Session, title: string): Promise<boolean> {
    return this.attempt(async () => this.#setSession(await rest.editSession(session.id, { title })))
  }

  /** Set whether a session ends when its last viewer leaves. */
  endWithLastViewer(session: Session, terminate: boolean): Promise<boolean> {
    return this.attempt(async () => this.#setSession(await rest.editSession(session.id, { onLastDisconnect: terminate ? 'terminate' : 'keep' })))
  }

  /** End a session: everything that runs in it is stopped, and its history stays. */
  archive(session: Session): Promise<boolean> {
    return this.attempt(async () => this.#setSession(await rest.completeSession(session.id)))
  }

  /** Make an archived session active again, and start its first agent, which continues its conversation. */
  continueSession(session: Session): Promise<boolean> {
    return this.attempt(async () => {
      const reopened = await rest.reopenSession(session.id)
      this.#setSession(reopened)
      const agent = reopened.workers.find((worker) => worker.type === 'agent' && canStartAgain(reopened, worker))
      if (agent) await rest.restartWorker(agent)
    })
  }

  /** Delete a session with its events and recordings, and leave its view. */
  purge(session: Session): Promise<boolean> {
    return this.attempt(async () => {
      await rest.purgeSession(session.id)
      if (this.session?.id === session.id) this.show({ view: 'home' })
      this.#receive({ type: 'removed', sessionId: session.id })
    })
  }

  /**
   * Run an action; return false and show the message if the server refuses it. If the user can remove the reason,
   * ask for it, and run the action again.
   */
  async attempt(action: () => Promise<void>): Promise<boolean> {
    this.busy = true
    this.problem = undefined
    try {
      await action()
      return true
    } catch (error) {
      const remedy = remedyFor(error, this.sessions)
      if (remedy && (await this.#ask(remedy.question))) return this.attempt(async () => void (await remedy.apply(), await action()))
      this.showError(error)
      return false
    } finally {
      this.busy = false
    }
  }

  /** Tell the server once that the user saw an item; after a failure the next call tells it again. Refusals wait for a decision. */
  #markItemSeen(item: InboxItem): void {
    if (item.seq === null || item.refused || this.#seenItems.has(item.id)) return
    this.#seenItems.add(item.id)
    rest.markSeen(item.sessionId, item.seq).catch(() => this.#seenItems.delete(item.id)) // sent again by the next `markShownSeen`
  }

  async #addWorker(sessionId: string, request: NewWorker): Promise<void> {
    const worker = await rest.createWorker(sessionId, request)
    this.show({ view: 'session', sessionId, workerId: worker.id })
  }

  /** Reload repositories and agents, which other clients may have changed. Errors are ignored, because the user did not ask for it. */
  async #reloadLists(): Promise<void> {
    if (!this.ready || document.visibilityState !== 'visible') return
    await Promise.all([
      rest.repositories().then(({ repositories }) => (this.repositories = repositories)),
      rest.agents().then(({ agents }) => (this.agents = agents)),
    ]).catch(() => {})
  }

  /** Show a session that a request returned, before the dashboard's socket reports it. */
  #setSession(session: Session): void {
    this.#receive({ type: 'session', session })
  }

  /** Apply a message of the dashboard socket, or the same change made by this page. */
  #receive(message: DashboardMessage): void {
    if (message.type === 'inbox') [this.inbox, this.inboxKnown] = [message.items, true]
    this.sessions = fold(this.sessions, message)
    if (message.type === 'session' && this.#isUnknownRepository(message.session.repoId)) void this.#reloadLists()
    this.markShownSeen()
  }

  #isUnknownRepository(repoId: string | null): boolean {
    return repoId !== null && !this.repositories.some(({ id }) => id === repoId)
  }

  /** Log in with a one-time code and store the secret. */
  async #login(code: string): Promise<void> {
    history.replaceState(null, '', location.pathname) // removes the used code from the history
    this.route = parseRoute('')
    await this.attempt(async () => storeSecret((await rest.login(code, deviceName(navigator.userAgent))).secret))
  }

  /** Check the login by loading the sessions. Only a refusal means "not logged in"; a server that does not answer does not. */
  async #checkLogin(): Promise<boolean> {
    try {
      const { sessions } = await rest.sessions()
      this.sessions = fold([], { type: 'sessions', sessions })
    } catch (error) {
      if (isLoginError(error)) this.access = 'denied'
    }
    if (this.access === 'unknown') this.access = 'granted'
    return this.access === 'granted'
  }

  /** Show the status of the connection, and find out whether the browser has been logged out. */
  #statusChanged(status: Status, closeCode?: number): void {
    this.status = status
    if (status === 'open') this.#reconnected()
    else if (status !== 'connecting') this.lostAt ??= Date.now()
    if (status === 'closed' && closeCode !== undefined) this.access = 'denied'
    // A refused WebSocket looks like an unreachable server; only a REST request shows the difference.
    if (status === 'waiting') void this.#checkLogin().then((granted) => granted || this.#dashboard.close())
  }

  /** After a reconnect, remove the message about the missing answer and load what could not be loaded. */
  #reconnected(): void {
    this.lostAt = undefined
    if (!this.#unanswered) return
    this.#unanswered = false
    this.problem = undefined
    if (this.ready) void this.loadAgents().then(() => this.loadRepositories())
  }

  /** Show the message of a failed request, and the login page if the login is no longer valid. Throw any other error. */
  showError(error: unknown): void {
    if (!(error instanceof ApiError)) throw error
    this.#unanswered = error.isTransient
    if (error.status === 401 && this.access === 'granted') this.access = 'denied'
    this.problem = error.message
  }
}

/** Return whether an error means "not logged in": 401 without a valid login, 403 with the cookie but without the secret. */
function isLoginError(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 401 || error.status === 403)
}
