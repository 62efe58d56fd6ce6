/**
 * What was typed and is not yet known to have reached the child. Batches are numbered 1, 2, 3 …; one that was
 * sent is sent again unchanged on the next connection, until the server acknowledges it, so each arrives once.
 */
export interface Batch {
  readonly n: number
  readonly data: string
}

const LARGEST = 16_384

export class Outbox {
  #waiting: Batch[] = []
  #last = 0 // the highest number given
  #told = 0 // the highest number any connection was ever given: its content may no longer change
  #sent = 0 // the highest number the present connection was given

  push(data: string): void {
    for (const piece of pieces(data.toWellFormed())) this.#add(piece)
  }

  /** Batches the present connection has not been given yet; they now count as sent. */
  take(): Batch[] {
    const batches = this.#waiting.filter((batch) => batch.n > this.#sent)
    this.#sent = this.#last
    this.#told = Math.max(this.#told, this.#sent)
    return batches
  }

  /** A new connection: whatever is not acknowledged goes out again. */
  rewind(): void {
    this.#sent = 0
  }

  acknowledge(n: number): void {
    this.#waiting = this.#waiting.filter((batch) => batch.n > n)
  }

  /** Nobody is left to read it. */
  clear(): void {
    this.#waiting = []
  }

  get empty(): boolean {
    return this.#waiting.length === 0
  }

  #add(data: string): void {
    const tail = this.#waiting.at(-1)
    if (tail && tail.n > this.#told && tail.data.length + data.length <= LARGEST) {
      this.#waiting[this.#waiting.length - 1] = { n: tail.n, data: tail.data + data }
    } else {
      this.#waiting.push({ n: ++this.#last, data })
    }
  }
}

/** Pieces small enough for one message, never cut inside a surrogate pair. */
function* pieces(data: string): Generator<string> {
  let start = 0
  while (start < data.length) {
    let end = Math.min(start + LARGEST, data.length)
    if (end < data.length && isHighSurrogate(data.charCodeAt(end - 1))) end--
    yield data.slice(start, end)
    start = end
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
