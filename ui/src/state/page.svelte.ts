/** What the page knows and does: who is in, which sessions there are, which one is shown. */
import { Connection, socketAddress, type Status } from '../api/connection.ts'
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import { keepSecret } from '../api/secret.ts'
import type { Agent, Session, Worker } from '../api/types.ts'
import { fold } from './dashboard.ts'
import { formatRoute, loginCode, parseRoute, type Route } from './route.ts'

export class Page {
  entrance: 'knocking' | 'inside' | 'outside' = $state('knocking')
  status: Status = $state('closed')
  sessions: readonly Session[] = $state.raw([])
  agents: readonly Agent[] = $state.raw([])
  problem: string | undefined = $state()
  busy = $state(false)
  route: Route | undefined = $state(parseRoute(location.hash))

  readonly session = $derived(this.sessions.find((session) => session.id === this.route?.sessionId))
  readonly #dashboard = new Connection({
    address: () => socketAddress('/dashboard'),
    opened: () => {},
    message: (data) => (this.sessions = fold(this.sessions, JSON.parse(data as string))),
    status: (status, closeCode) => this.#became(status, closeCode),
  })

  async start(): Promise<void> {
    const code = loginCode(location.hash)
    if (code) await this.#login(code)
    if (!(await this.#knock())) return
    this.#dashboard.open()
    await this.#attempt(async () => void (this.agents = (await rest.agents()).agents))
  }

  /** The address changed under us: the back button, or a link of ours. */
  routed(): void {
    this.route = parseRoute(location.hash)
  }

  show(route: Route): void {
    location.hash = formatRoute(route)
  }

  nudge(): void {
    this.#dashboard.nudge()
  }

  /** A new session in this directory (the server's default when empty) with one terminal, shown at once. */
  openTerminal(locationPath: string): Promise<void> {
    return this.#attempt(async () => {
      const session = await rest.createSession(locationPath)
      await this.#addTerminal(session.id)
    })
  }

  /** A new session in this directory with this agent, shown at once. */
  openAgent(locationPath: string, agentId: string): Promise<void> {
    return this.#attempt(async () => {
      const session = await rest.createSession(locationPath, agentId)
      this.show({ sessionId: session.id })
    })
  }

  addTerminal(session: Session): Promise<void> {
    return this.#attempt(() => this.#addTerminal(session.id))
  }

  end(session: Session): Promise<void> {
    return this.#attempt(async () => void (await rest.cancelSession(session.id)))
  }

  restart(worker: Worker): Promise<void> {
    return this.#attempt(async () => void (await rest.restartWorker(worker)))
  }

  async #addTerminal(sessionId: string): Promise<void> {
    const worker = await rest.createTerminal(sessionId)
    this.show({ sessionId, workerId: worker.id })
  }

  async #attempt(action: () => Promise<void>): Promise<void> {
    this.busy = true
    this.problem = undefined
    try {
      await action()
    } catch (error) {
      this.#refused(error)
    } finally {
      this.busy = false
    }
  }

  async #login(code: string): Promise<void> {
    history.replaceState(null, '', location.pathname) // a used code has no place in the history
    await this.#attempt(async () => keepSecret((await rest.login(code)).secret))
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
    if (status === 'closed' && closeCode !== undefined) this.entrance = 'outside'
    // A refused upgrade looks to us like a dead server; only REST can tell which it was.
    if (status === 'waiting') void this.#knock().then((inside) => inside || this.#dashboard.close())
  }

  #refused(error: unknown): void {
    if (!(error instanceof ApiError)) throw error
    if (error.status === 401 && this.entrance === 'inside') this.entrance = 'outside'
    this.problem = error.message
  }
}

/** 401 without a login we know of, 403 when the cookie is there and the secret is not. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 401 || error.status === 403)
}
