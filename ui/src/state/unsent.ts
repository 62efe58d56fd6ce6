/**
 * Prompts the stream has not shown yet. Each is kept in this origin's storage under its own id, so that neither a
 * reload nor a second page loses or overwrites one; the server takes an id once, however often it comes.
 */
export interface Unsent {
  readonly promptId: string
  readonly text: string
  readonly imageIds: readonly string[]
  readonly at: string
  /** Why the server refused it; until somebody tries again it stays. */
  readonly problem?: string
}

export class UnsentPrompts {
  readonly #prefix: string
  #all: readonly Unsent[]

  constructor(workerId: string) {
    this.#prefix = `bullpen.unsent.${workerId}.`
    this.#all = this.#read()
  }

  get all(): readonly Unsent[] {
    return this.#all
  }

  add(prompt: Unsent): void {
    this.#all = [...this.#all.filter(({ promptId }) => promptId !== prompt.promptId), prompt]
    this.#store(prompt)
  }

  remove(promptId: string): void {
    if (!this.#all.some((prompt) => prompt.promptId === promptId)) return
    this.#all = this.#all.filter((prompt) => prompt.promptId !== promptId)
    localStorage.removeItem(this.#prefix + promptId)
  }

  /** The same prompt with why it was refused, or without when it is tried again. */
  mark(promptId: string, problem: string | undefined): void {
    const prompt = this.#all.find((each) => each.promptId === promptId)
    if (!prompt) return
    const { problem: _, ...rest } = prompt
    this.#put(problem === undefined ? rest : { ...rest, problem })
  }

  #put(prompt: Unsent): void {
    this.#all = this.#all.map((each) => (each.promptId === prompt.promptId ? prompt : each))
    this.#store(prompt)
  }

  #store(prompt: Unsent): void {
    try {
      localStorage.setItem(this.#prefix + prompt.promptId, JSON.stringify(prompt))
    } catch (error) {
      console.warn('The prompt will not survive a reload as it is now; the storage of this page is full.', error)
    }
  }

  #read(): Unsent[] {
    const keys = Array.from({ length: localStorage.length }, (_, n) => localStorage.key(n) ?? '')
    const found = keys.filter((key) => key.startsWith(this.#prefix)).map((key) => parse(localStorage.getItem(key)))
    return found.filter((prompt) => prompt !== undefined).sort((a, b) => a.at.localeCompare(b.at))
  }
}

function parse(stored: string | null): Unsent | undefined {
  try {
    const prompt = JSON.parse(stored ?? 'null') as Unsent | null
    return typeof prompt?.promptId === 'string' && typeof prompt.text === 'string' && Array.isArray(prompt.imageIds) ? prompt : undefined
  } catch {
    return undefined
  }
}
