/** The REST calls of one conversation: prompts, answers, the queue, settings and images. */
import { call, download, upload } from './http.ts'
import type { Image } from './types/prompts.ts'
import type { Queue, QueueEdit } from './types/queue.ts'

export interface Wish {
  readonly promptId: string
  readonly text: string
  readonly imageIds: readonly string[]
}

export type Choice = { kind: 'mode' | 'model'; value: string } | { kind: 'option'; id: string; value: string | boolean }

/** Sends requests for one agent of one session. */
export class Talking {
  readonly #session: string
  readonly #worker: string
  readonly #workerId: string

  constructor(sessionId: string, workerId: string) {
    this.#session = `/sessions/${encodeURIComponent(sessionId)}`
    this.#worker = `${this.#session}/workers/${encodeURIComponent(workerId)}`
    this.#workerId = workerId
  }

  /** Send a prompt. Sending the same `promptId` again has no effect. */
  prompt({ promptId, text, imageIds }: Wish): Promise<{ seq: number; queued: boolean }> {
    return call('POST', `${this.#session}/prompt`, { promptId, text, imageIds, workerId: this.#workerId })
  }

  cancelTurn(): Promise<void> {
    return call('POST', `${this.#session}/cancel`, { workerId: this.#workerId })
  }

  /** Answer a permission request with one of its options. */
  permit(id: string, optionId: string): Promise<void> {
    return call('POST', `${this.#session}/permissions/${encodeURIComponent(id)}`, { optionId })
  }

  /** Answer or decline a question. */
  answer(id: string, action: string, content?: Record<string, unknown>): Promise<void> {
    return call('POST', `${this.#session}/questions/${encodeURIComponent(id)}`, { action, content })
  }

  /** Change the mode, the model or another option of the agent. */
  choose(choice: Choice): Promise<void> {
    if (choice.kind === 'option') return call('PUT', `${this.#worker}/options/${encodeURIComponent(choice.id)}`, { value: choice.value })
    return call('PUT', `${this.#worker}/${choice.kind}`, { [`${choice.kind}Id`]: choice.value })
  }

  queue(): Promise<Queue> {
    return call('GET', `${this.#session}/queue`)
  }

  editQueued(id: string, edit: QueueEdit): Promise<void> {
    return call('PATCH', this.#queued(id), edit)
  }

  moveQueued(id: string, direction: 'up' | 'down'): Promise<void> {
    return call('POST', `${this.#queued(id)}/move`, { direction })
  }

  removeQueued(id: string): Promise<void> {
    return call('DELETE', this.#queued(id))
  }

  sendNow(id: string): Promise<void> {
    return call('POST', `${this.#queued(id)}/send-now`)
  }

  pauseQueue(paused: boolean): Promise<void> {
    return call('POST', `${this.#session}/queue/${paused ? 'pause' : 'resume'}`)
  }

  addImage(file: Blob): Promise<Image> {
    return upload(`${this.#session}/images`, file)
  }

  image(id: string): Promise<Blob> {
    return download(`${this.#session}/images/${encodeURIComponent(id)}`)
  }

  /** The whole output of a terminal of this session. */
  output(terminalId: string): Promise<Blob> {
    return download(`${this.#session}/workers/${encodeURIComponent(terminalId)}/output`)
  }

  #queued(id: string): string {
    return `${this.#session}/queue/${encodeURIComponent(id)}`
  }
}
