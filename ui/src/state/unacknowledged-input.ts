/**
 * Unacknowledged terminal input in batches numbered 1, 2, 3 …. A sent batch is sent again unchanged on the next
 * connection until the server acknowledges it, so each batch arrives exactly once.
 */
export interface Batch {
  readonly n: number
  readonly data: string
}

const MAX_BATCH = 16_384 // in UTF-16 code units

/** The unacknowledged input of one terminal run. */
export class UnacknowledgedInput {
  #waiting: Batch[] = []
  #last = 0 // the highest number in use
  #highestSent = 0 // the highest number sent on any connection: batches up to it must not change
  #sentHere = 0 // the highest number sent on the current connection

  /** Add input in numbered batches. */
  push(data: string): void {
    for (const piece of pieces(data.toWellFormed())) this.#add(piece)
  }

  /** Return the batches that were not sent on the current connection, and mark them as sent. */
  take(): Batch[] {
    const batches = this.#waiting.filter((batch) => batch.n > this.#sentHere)
    this.#sentHere = this.#last
    this.#highestSent = Math.max(this.#highestSent, this.#sentHere)
    return batches
  }

  /** Mark all unacknowledged batches as unsent, for a new connection. */
  rewind(): void {
    this.#sentHere = 0
  }

  /** Drop the batches up to a number, because the server has them. */
  acknowledge(n: number): void {
    this.#waiting = this.#waiting.filter((batch) => batch.n > n)
  }

  /** Delete all batches, because no program can read them. */
  clear(): void {
    this.#waiting = []
  }

  get empty(): boolean {
    return this.#waiting.length === 0
  }

  /** Add input to the last batch if that was not sent and has room, else to a new one. */
  #add(data: string): void {
    const tail = this.#waiting.at(-1)
    if (tail && tail.n > this.#highestSent && tail.data.length + data.length <= MAX_BATCH) {
      this.#waiting[this.#waiting.length - 1] = { n: tail.n, data: tail.data + data }
    } else {
      this.#waiting.push({ n: ++this.#last, data })
    }
  }
}

/** Split input into pieces small enough for one message, but never inside a surrogate pair. */
function* pieces(data: string): Generator<string> {
  let start = 0
  while (start < data.length) {
    let end = Math.min(start + MAX_BATCH, data.length)
    if (end < data.length && isHighSurrogate(data.charCodeAt(end - 1))) end--
    yield data.slice(start, end)
    start = end
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
