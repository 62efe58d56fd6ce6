/** What this page has drawn of a terminal: bytes in by offset, acknowledged once they are on the screen. */
import { decodeOutput, type History } from '../api/frames.ts'
import type { Size } from '../api/frames.ts'
import { Position } from './position.ts'

/** What draws; `drawn` is called when the bytes are on the screen. */
export interface Screen {
  restore(history: Uint8Array<ArrayBuffer>, size: Size, drawn: () => void): void
  write(bytes: Uint8Array<ArrayBuffer>, drawn: () => void): void
  resize(size: Size): void
  /** The size that would fill the room there is. */
  room(): Size
}

const ACKNOWLEDGE_EVERY = 128 * 1024

export class Drawing {
  readonly #screen: Screen
  readonly #acknowledge: (offset: number) => void
  readonly #position = new Position()
  #acknowledged = 0
  #size: Size | undefined // the terminal's, which may be another viewer's

  constructor(screen: Screen, acknowledge: (offset: number) => void) {
    this.#screen = screen
    this.#acknowledge = acknowledge
  }

  /** The offset of the first byte that is missing. */
  get next(): number {
    return this.#position.next
  }

  get room(): Size {
    return this.#screen.room()
  }

  restore({ offset, cols, rows, data }: History): void {
    this.#position.next = offset
    this.#acknowledged = 0
    this.#size = { cols, rows }
    this.#screen.restore(new TextEncoder().encode(data), this.#size, () => this.#drawn(offset))
  }

  /** Draws what is new in a frame; false when something before it is missing. */
  draw(frame: ArrayBuffer): boolean {
    const fresh = this.#position.take(decodeOutput(frame))
    if (fresh === 'hole') return false
    const end = this.next
    if (fresh.length > 0) this.#screen.write(fresh, () => this.#drawn(end))
    return true
  }

  resize(size: Size): void {
    this.#size = size
    this.refit()
  }

  /** The same size in other room. */
  refit(): void {
    if (this.#size) this.#screen.resize(this.#size)
  }

  /** Acknowledge when the screen has caught up, and now and then while it has not. */
  #drawn(offset: number): void {
    if (offset < this.next && offset - this.#acknowledged < ACKNOWLEDGE_EVERY) return
    this.#acknowledged = offset
    this.#acknowledge(offset)
  }
}
