/**
 * The line between one agent and the pane that shows it: events in by number, prompts out by an id of their own,
 * both exactly once over any number of connections.
 */
import { Connection, socketAddress, type Status } from '../api/connection.ts'
import { ApiError } from '../api/http.ts'
import { randomId } from '../api/random.ts'
import { rest } from '../api/rest.ts'
import type { Queue, Session, SessionEvent, Worker } from '../api/types.ts'
import { EMPTY, fold, type Chat } from './chat.ts'

const SHOWN = 3000 // events of the past; more than two hundred entries are seldom made of fewer

type Message =
  | { type: 'snapshot'; seq: number }
  | { type: 'events'; events: SessionEvent[] }
  | { type: 'heartbeat'; head: number }

export interface Unsent {
  promptId: string
  text: string
}

export class Talk {
  status: Status = $state('closed')
  chat: Chat = $state.raw(EMPTY)
  queue: Queue = $state.raw({ messages: [], count: 0, paused: false })
  /** Prompts the stream has not shown yet. */
  unsent: readonly Unsent[] = $state.raw([])
  problem: string | undefined = $state()

  readonly #sessionId: string
  readonly #workerId: string
  readonly #connection: Connection
  #seq: number

  constructor(session: Pick<Session, 'id' | 'lastSeq'>, worker: Pick<Worker, 'id'>) {
    this.#sessionId = session.id
    this.#workerId = worker.id
    this.#seq = Math.max(0, session.lastSeq - SHOWN)
    this.#connection = new Connection({
      address: () => socketAddress(`/session/${encodeURIComponent(session.id)}`),
      opened: () => this.#opened(),
      message: (data) => this.#told(JSON.parse(data as string) as Message),
      status: (status) => (this.status = status),
    })
  }

  open(): void {
    this.#connection.open()
  }

  close(): void {
    this.#connection.close()
  }

  nudge(): void {
    this.#connection.nudge()
  }

  /** The prompt is kept, and sent again after a lost connection, until the stream has it. */
  async say(text: string): Promise<void> {
    const prompt = { promptId: randomId(), text }
    this.unsent = [...this.unsent, prompt]
    await this.#send(prompt)
  }

  stop(): Promise<boolean> {
    return this.#attempt(() => rest.cancelTurn(this.#sessionId, this.#workerId))
  }

  permit(permissionId: string, optionId: string): Promise<boolean> {
    return this.#attempt(() => rest.answerPermission(this.#sessionId, permissionId, optionId))
  }

  answer(questionId: string, action: 'accept' | 'decline', content?: Record<string, unknown>): Promise<boolean> {
    return this.#attempt(() => rest.answerQuestion(this.#sessionId, questionId, action, content))
  }

  resumeQueue(): Promise<boolean> {
    return this.#attempt(() => rest.resumeQueue(this.#sessionId))
  }

  #opened(): void {
    this.#connection.send({ type: 'subscribe', after: this.#seq })
    for (const prompt of this.unsent) void this.#send(prompt)
    void this.#countQueue()
  }

  #told(message: Message): void {
    if (message.type === 'snapshot') {
      // Too far behind to be told everything: what lies between is in the log, not in this pane.
      this.#seq = message.seq
      this.chat = EMPTY
    } else if (message.type === 'events') {
      this.#apply(message.events)
    } else if (message.type === 'heartbeat' && message.head < this.#seq) {
      this.#connection.restart()
    }
  }

  #apply(events: SessionEvent[]): void {
    const { queueChanges } = this.chat
    let chat = this.chat
    for (const event of events) {
      if (event.seq <= this.#seq) continue
      if (event.seq !== this.#seq + 1) return this.#connection.restart()
      this.#seq = event.seq
      if (event.type === 'user_prompt' || event.type === 'queue_added') this.#seen(event)
      if (event.workerId === this.#workerId || event.workerId === null) chat = fold(chat, event)
    }
    this.chat = chat
    if (chat.queueChanges !== queueChanges) void this.#countQueue()
  }

  #seen({ data }: SessionEvent): void {
    const id = data.promptId ?? data.id
    this.unsent = this.unsent.filter((prompt) => prompt.promptId !== id)
  }

  async #send({ promptId, text }: Unsent): Promise<void> {
    const refused = await this.#refusal(() => rest.prompt(this.#sessionId, { promptId, text, workerId: this.#workerId }))
    // Unreachable: it goes out again with the next connection. Refused: it never will.
    if (refused && refused.status !== 0) this.unsent = this.unsent.filter((prompt) => prompt.promptId !== promptId)
  }

  async #countQueue(): Promise<void> {
    await this.#refusal(async () => (this.queue = await rest.queue(this.#sessionId)))
  }

  async #attempt(action: () => Promise<unknown>): Promise<boolean> {
    return (await this.#refusal(action)) === undefined
  }

  async #refusal(action: () => Promise<unknown>): Promise<ApiError | undefined> {
    try {
      await action()
      this.problem = undefined
      return undefined
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.problem = error.message
      return error
    }
  }
}
