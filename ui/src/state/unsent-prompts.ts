/**
 * Store prompts that are not in the event stream yet. Each has its own key in the local storage of this origin, so that
 * neither a reload nor a second page loses one. The server accepts each prompt id only once.
 */
export interface UnsentPrompt {
  readonly promptId: string
  readonly text: string
  readonly imageIds: readonly string[]
  readonly at: string
  /** Why the server refused the prompt; removed when the user retries. */
  readonly problem?: string
}

/** The unsent prompts of one agent. */
export class UnsentPrompts {
  readonly #prefix: string
  #all: readonly UnsentPrompt[]

  constructor(workerId: string) {
    this.#prefix = `bullpen.unsent.${workerId}.`
    this.#all = this.#read()
  }

  get all(): readonly UnsentPrompt[] {
    return this.#all
  }

  add(prompt: UnsentPrompt): void {
    this.#all = [...this.#all.filter(({ promptId }) => promptId !== prompt.promptId), prompt]
    this.#store(prompt)
  }

  remove(promptId: string): void {
    if (!this.#all.some((prompt) => prompt.promptId === promptId)) return
    this.#all = this.#all.filter((prompt) => prompt.promptId !== promptId)
    localStorage.removeItem(this.#prefix + promptId)
  }

  /** Set or remove the reason for which a prompt was refused. */
  mark(promptId: string, problem: string | undefined): void {
    const prompt = this.#all.find((each) => each.promptId === promptId)
    if (!prompt) return
    const { problem: _, ...rest } = prompt
    this.#put(problem === undefined ? rest : { ...rest, problem })
  }

  /** Replace the stored prompt with the same id. */
  #put(prompt: UnsentPrompt): void {
    this.#all = this.#all.map((each) => (each.promptId === prompt.promptId ? prompt : each))
    this.#store(prompt)
  }

  /** Store a prompt for reloads; a full storage is only logged. */
  #store(prompt: UnsentPrompt): void {
    try {
      localStorage.setItem(this.#prefix + prompt.promptId, JSON.stringify(prompt))
    } catch (error) {
      console.warn('The prompt will not survive a reload, because the storage of the page is full.', error)
    }
  }

  #read(): UnsentPrompt[] {
    const keys = Array.from({ length: localStorage.length }, (_, n) => localStorage.key(n) ?? '')
    const found = keys.filter((key) => key.startsWith(this.#prefix)).map((key) => parse(localStorage.getItem(key)))
    return found.filter((prompt) => prompt !== undefined).sort((a, b) => a.at.localeCompare(b.at))
  }
}

/** Return a stored prompt, or undefined if it is invalid. */
function parse(stored: string | null): UnsentPrompt | undefined {
  try {
    const prompt = JSON.parse(stored ?? 'null') as UnsentPrompt | null
    return typeof prompt?.promptId === 'string' && typeof prompt.text === 'string' && Array.isArray(prompt.imageIds) ? prompt : undefined
  } catch {
    return undefined
  }
}
