/**
 * The live state of one agent's conversation: receive its events exactly once and in order over any number of
 * connections, keep the window of shown entries, and send requests to the agent.
 */
import { Connection, socketAddress, type Status } from '../api/connection.ts'
import { ApiError, NO_ANSWER } from '../api/http.ts'
import { LATEST, rest } from '../api/rest.ts'
import { ConversationApi, type SettingChange } from '../api/conversation-api.ts'
import type { SessionEvent } from '../api/types/events.ts'
import type { Queue } from '../api/types/queue.ts'
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import { append, around, atEnd, earlier, emptyWindow, hasEarlier, later, prepend, type EntryWindow } from './entry-window.ts'
import { isVisible } from './entries.ts'
import { foldConversation, EMPTY_CONVERSATION, SETTING_TYPES, TURN_TYPES, type Conversation } from './conversation.ts'
import { FrameThrottle, afterNextDraw } from './animation-frames.ts'
import { PromptSender } from './prompt-sender.svelte.ts'

const FIRST_ENTRIES = 40 // drawn first: enough to fill the screen, and fast
const PAGE_EVENTS = 1000 // loaded when the user scrolls up

type Message =
  | { type: 'snapshot'; seq: number; session: Session }
  | { type: 'events'; events: SessionEvent[] }
  | { type: 'heartbeat'; head: number }

/** The state of one agent's conversation; used by the chat view and its parts. */
export class LiveConversation {
  status: Status = $state('closed')
  window: EntryWindow = $state.raw(emptyWindow(1))
  conversation: Conversation = $state.raw(EMPTY_CONVERSATION)
  queue: Queue = $state.raw({ messages: [], count: 0, paused: false })
  problem: string | undefined = $state()
  loading = $state(false)
  /** Whether all events up to the head of the log at the start were received. */
  caughtUp = $state(false)
  /** Whether the list is scrolled to its end; set by the list. */
  following = true

  readonly calls: ConversationApi
  readonly prompts: PromptSender
  readonly name: string
  readonly workspace: string | undefined
  readonly #sessionId: string
  readonly #workerId: string
  readonly #connection: Connection
  readonly #frame = new FrameThrottle(() => this.#apply())
  #seq: number
  #origin: number // the state of the conversation up to this seq is requested by event type
  #pending: SessionEvent[] = []
  #newerEvents: SessionEvent[] | undefined = [] // events after #origin, kept until the state at #origin is loaded
  #latest: Promise<void> | undefined
  #queueRequests = 0 // requests of the queue; only the answer to the latest is used

  constructor(session: Pick<Session, 'id' | 'lastSeq'>, worker: Pick<Worker, 'id'> & Partial<Pick<Worker, 'name' | 'workspace'>>) {
    this.calls = new ConversationApi(session.id, worker.id)
    this.#sessionId = session.id
    this.name = worker.name ?? 'The agent'
    this.workspace = worker.workspace
    this.#workerId = worker.id
    this.prompts = new PromptSender(worker.id, this.calls, () => this.#seq)
    this.#origin = session.lastSeq
    this.#seq = Math.max(0, session.lastSeq - LATEST.limit)
    this.window = emptyWindow(this.#seq + 1)
    this.caughtUp = this.#seq === session.lastSeq
    this.#connection = new Connection({
      address: () => socketAddress(`/session/${encodeURIComponent(session.id)}`),
      opened: () => void this.#opened(),
      message: (data) => this.#receive(JSON.parse(data as string) as Message),
      status: (status) => this.#statusChanged(status),
    })
  }

  open(): void {
    this.#latest = this.#loadLatest()
    this.#connection.open()
  }

  close(): void {
    this.#connection.close()
    this.prompts.suspend()
  }

  retryNow(): void {
    this.#connection.retryNow()
    this.prompts.retryNow()
  }

  /** Cancel the running turn. */
  stop(): Promise<boolean> {
    return this.#attempt(() => this.calls.cancelTurn())
  }

  /** Answer a permission; return whether the server accepted the answer. */
  permit(permissionId: string, optionId: string): Promise<boolean> {
    return this.#attempt(() => this.calls.permit(permissionId, optionId))
  }

  /** Accept or decline a question; return whether the server accepted the answer. */
  answer(questionId: string, action: 'accept' | 'decline', content?: Record<string, unknown>): Promise<boolean> {
    return this.#attempt(() => this.calls.answer(questionId, action, content))
  }

  /** Change a setting of the agent; return whether that was accepted. */
  choose(choice: SettingChange): Promise<boolean> {
    return this.#attempt(() => this.calls.choose(choice))
  }

  /** Change the queue by one request, then reload it whether the request succeeded or not. */
  async changeQueue(request: (calls: ConversationApi) => Promise<void>): Promise<boolean> {
    const succeeded = await this.#attempt(() => request(this.calls))
    await this.#loadQueue()
    return succeeded
  }

  /** Show older entries at the top, and load them if necessary; return false if there are none. */
  async showEarlier(): Promise<boolean> {
    if (!hasEarlier(this.window)) return false
    if (this.window.start === 0 && !(await this.loadEarlier())) return false
    this.window = earlier(this.window)
    return true
  }

  showLater(): void {
    this.window = later(this.window)
  }

  showLatest(): void {
    this.window = atEnd(this.window)
  }

  /** Move the window of drawn entries, so that it includes this place. */
  showAround(place: number): void {
    this.window = around(this.window, place)
  }

  /** Load older events; the shown entries stay the same. Return false if there are none or loading failed. */
  async loadEarlier(): Promise<boolean> {
    const { from } = this.window
    if (from <= 1 || this.loading) return false
    this.loading = true
    const after = Math.max(0, from - 1 - PAGE_EVENTS)
    const found = await this.#try(() => rest.events(this.#sessionId, { after, before: from, limit: PAGE_EVENTS }))
    this.loading = false
    if (!found || this.window.from !== from) return false
    this.window = prepend(this.window, found.events.filter((event) => this.#isRelevant(event)), after + 1)
    return true
  }

  /** Return the index of the last visible entry at or before a seq, and load older events for it; -1 if there is none. */
  async indexOfSeq(seq: number): Promise<number> {
    while (this.window.from > seq && ((await this.loadEarlier()) || this.loading)) {
      if (this.loading) await new Promise((resolve) => setTimeout(resolve, 20)) // another call is loading
    }
    return this.window.entries.findLastIndex((entry) => entry.key <= seq && isVisible(entry))
  }

  /** Load the newest events by REST, which is faster than the connection and often prefetched. */
  async #loadLatest(): Promise<void> {
    try {
      const { events } = await rest.events(this.#sessionId, LATEST)
      this.#startWith(events)
    } catch (error) {
      this.#latest = undefined // the stream sends the same events; until then each new connection tries again
      if (!(error instanceof ApiError)) console.warn('The newest events could not be read.', error)
    }
  }

  /** Start the window with the newest events. */
  #startWith(events: SessionEvent[]): void {
    const [first, last] = [events.at(0), events.at(-1)]
    if (!first || !last) return
    const isComplete = first.seq === 1
    this.#origin = isComplete ? 0 : last.seq
    this.#newerEvents = isComplete ? undefined : [] // the whole log is known, so nothing must be loaded before it
    this.#seq = first.seq - 1
    this.window = emptyWindow(first.seq)
    this.#take(events)
    this.#apply()
  }

  /** Whether no event was received yet, by REST or by the stream. */
  get #hasNoEvents(): boolean {
    return this.window.from === this.#seq + 1
  }

  async #opened(): Promise<void> {
    if (this.#hasNoEvents) this.#latest ??= this.#loadLatest()
    await this.#latest
    this.#connection.send({ type: 'subscribe', after: this.#seq })
    void this.prompts.send()
    void this.#loadQueue()
    if (this.#newerEvents) void this.#loadState()
  }

  /** Handle a message of the server. A heartbeat with fewer events than this page has shows that the server lost some; the page then connects again. */
  #receive(message: Message): void {
    if (message.type === 'snapshot') this.#restartAt(message.seq)
    else if (message.type === 'events') this.#take(message.events)
    else if (message.type === 'heartbeat' && message.head < this.#seq) this.#connection.restart()
  }

  /** Start again at `seq`, because this page is too far behind to receive all events. Skipped events are loaded when the user scrolls to them. */
  #restartAt(seq: number): void {
    this.#seq = this.#origin = seq
    this.#pending = []
    this.#newerEvents = []
    this.window = emptyWindow(seq + 1)
    this.caughtUp = true
    void this.loadEarlier().then(() => this.showLatest())
    void this.#loadState()
  }

  /** Load the state of the conversation (settings, turn, usage) at `#origin`, and add the events since then. */
  async #loadState(): Promise<void> {
    const before = this.#origin + 1
    const found = await this.#try(() =>
      Promise.all([
        rest.events(this.#sessionId, { before, limit: 100, types: SETTING_TYPES, newest: true }),
        rest.events(this.#sessionId, { before, limit: 100, types: TURN_TYPES, newest: true }),
      ]),
    )
    if (!found || !this.#newerEvents || before !== this.#origin + 1) return // repeated by the next connection
    const olderEvents = found.flatMap(({ events }) => events).filter((event) => event.workerId === this.#workerId)
    olderEvents.sort((a, b) => a.seq - b.seq)
    this.conversation = [...olderEvents, ...this.#newerEvents].reduce(foldConversation, EMPTY_CONVERSATION)
    this.#newerEvents = undefined
  }

  /** Accept the next events, or reconnect if one is missing. */
  #take(events: SessionEvent[]): void {
    for (const event of events) {
      if (event.seq <= this.#seq) continue
      if (event.seq !== this.#seq + 1) return this.#connection.restart()
      this.#seq = event.seq
      this.#pending.push(event)
    }
    this.#frame.request()
  }

  /** Apply the accepted events to the window, the conversation and the prompts. */
  #apply(): void {
    const events = this.#pending
    this.#pending = []
    if (!events.length) return
    this.prompts.confirm(events)
    this.window = append(this.window, events.filter((event) => this.#isRelevant(event)), this.following)
    if (!this.caughtUp && this.following) this.#showFirst()
    const newEvents = events.filter((event) => event.seq > this.#origin)
    const ownEvents = newEvents.filter((event) => event.workerId === this.#workerId)
    if (this.#newerEvents) this.#newerEvents.push(...ownEvents)
    else this.conversation = ownEvents.reduce(foldConversation, this.conversation)
    this.caughtUp ||= (events.at(-1)?.seq ?? 0) >= this.#origin
    if (newEvents.some(({ type }) => type.startsWith('queue_'))) void this.#loadQueue()
  }

  /** Draw a few entries first, and the others after they are on the screen. */
  #showFirst(): void {
    this.window = atEnd(this.window, FIRST_ENTRIES)
    afterNextDraw(() => this.following && this.showLatest())
  }

  /** Whether an event is about this agent or the whole session. */
  #isRelevant(event: SessionEvent): boolean {
    return event.workerId === this.#workerId || event.workerId === null
  }

  async #loadQueue(): Promise<void> {
    const request = ++this.#queueRequests
    const found = await this.#try(() => this.calls.queue())
    if (found && request === this.#queueRequests) this.queue = found
  }

  /** Show the status; a new connection clears the message that the server does not answer. */
  #statusChanged(status: Status): void {
    this.status = status
    if (status === 'open' && this.problem === NO_ANSWER) this.problem = undefined
  }

  /** Run a request and return its answer, or undefined on an error, which the connection indicator shows. */
  async #try<T>(action: () => Promise<T>): Promise<T | undefined> {
    try {
      return await action()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return undefined
    }
  }

  /** Run a request; return false and show the message if the server refuses it. */
  async #attempt(action: () => Promise<unknown>): Promise<boolean> {
    try {
      await action()
      this.problem = undefined
      return true
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.problem = error.message
      return false
    }
  }
}
