/** The REST calls of one conversation: prompts, answers, the queue, settings and images. */
import { call, download, upload } from './http.ts'
import type { FileNames } from './types/files.ts'
import type { Image } from './types/prompts.ts'
import type { Queue, QueueEdit } from './types/queue.ts'

/** The content of a prompt. */
export interface PromptRequest {
  readonly promptId: string
  readonly text: string
  readonly imageIds: readonly string[]
}

/** A new value of one setting of an agent. */
export type SettingChange = { kind: 'mode' | 'model'; value: string } | { kind: 'option'; id: string; value: string | boolean }

/** Sends requests for one agent of one session. */
export class ConversationApi {
  readonly #sessionPath: string
  readonly #workerPath: string
  readonly #workerId: string

  constructor(sessionId: string, workerId: string) {
    this.#sessionPath = `/sessions/${encodeURIComponent(sessionId)}`
    this.#workerPath = `${this.#sessionPath}/workers/${encodeURIComponent(workerId)}`
    this.#workerId = workerId
  }

  /** Send a prompt. Sending the same `promptId` again has no effect. */
  prompt({ promptId, text, imageIds }: PromptRequest): Promise<{ seq: number; queued: boolean }> {
    return call('POST', `${this.#sessionPath}/prompt`, { promptId, text, imageIds, workerId: this.#workerId })
  }

  cancelTurn(): Promise<void> {
    return call('POST', `${this.#sessionPath}/cancel`, { workerId: this.#workerId })
  }

  /** Answer a permission request with one of its options. */
  permit(id: string, optionId: string): Promise<void> {
    return call('POST', `${this.#sessionPath}/permissions/${encodeURIComponent(id)}`, { optionId })
  }

  /** Answer or decline a question. */
  answer(id: string, action: string, content?: Record<string, unknown>): Promise<void> {
    return call('POST', `${this.#sessionPath}/questions/${encodeURIComponent(id)}`, { action, content })
  }

  /** Change the mode, the model or another option of the agent. */
  choose(choice: SettingChange): Promise<void> {
    if (choice.kind === 'option') return call('PUT', `${this.#workerPath}/options/${encodeURIComponent(choice.id)}`, { value: choice.value })
    return call('PUT', `${this.#workerPath}/${choice.kind}`, { [`${choice.kind}Id`]: choice.value })
  }

  queue(): Promise<Queue> {
    return call('GET', `${this.#sessionPath}/queue`)
  }

  editQueued(id: string, edit: QueueEdit): Promise<void> {
    return call('PATCH', this.#queuedPath(id), edit)
  }

  moveQueued(id: string, direction: 'up' | 'down'): Promise<void> {
    return call('POST', `${this.#queuedPath(id)}/move`, { direction })
  }

  removeQueued(id: string): Promise<void> {
    return call('DELETE', this.#queuedPath(id))
  }

  /** Send a queued message now, which cancels the running turn. */
  sendNow(id: string): Promise<void> {
    return call('POST', `${this.#queuedPath(id)}/send-now`)
  }

  /** Pause the queue, or resume it if `paused` is false. */
  pauseQueue(paused: boolean): Promise<void> {
    return call('POST', `${this.#sessionPath}/queue/${paused ? 'pause' : 'resume'}`)
  }

  addImage(file: Blob): Promise<Image> {
    return upload(`${this.#sessionPath}/images`, file)
  }

  image(id: string): Promise<Blob> {
    return download(`${this.#sessionPath}/images/${encodeURIComponent(id)}`)
  }

  /** The names of the files in the workspace of the agent. */
  fileNames(): Promise<FileNames> {
    return call('GET', `${this.#sessionPath}/file-names?workerId=${encodeURIComponent(this.#workerId)}`)
  }

  /** The whole output of a terminal of this session. */
  output(terminalId: string): Promise<Blob> {
    return download(`${this.#sessionPath}/workers/${encodeURIComponent(terminalId)}/output`)
  }

  #queuedPath(id: string): string {
    return `${this.#sessionPath}/queue/${encodeURIComponent(id)}`
  }
}
