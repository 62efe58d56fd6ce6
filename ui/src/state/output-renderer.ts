/** Draw the output of a terminal in order of its offsets, and acknowledge it after it is on the screen. */
import { decodeOutput, type History } from '../api/terminal-messages.ts'
import type { Size } from '../api/terminal-messages.ts'
import { OutputPosition } from './output-position.ts'

/** The terminal emulator of the page; it calls `drawn` when the bytes are on the screen. */
export interface Screen {
  restore(history: Uint8Array<ArrayBuffer>, size: Size, drawn: () => void): void
  write(bytes: Uint8Array<ArrayBuffer>, drawn: () => void): void
  resize(size: Size): void
  /** Return the size that fills the available space. */
  room(): Size
}

const ACKNOWLEDGE_BYTES = 128 * 1024

/** Draws the output of one terminal on its screen. */
export class OutputRenderer {
  readonly #screen: Screen
  readonly #acknowledge: (offset: number) => void
  readonly #position = new OutputPosition()
  #acknowledged = 0
  #size: Size | undefined // of the terminal, which another viewer may have set

  constructor(screen: Screen, acknowledge: (offset: number) => void) {
    this.#screen = screen
    this.#acknowledge = acknowledge
  }

  /** The offset of the next byte to draw. */
  get next(): number {
    return this.#position.next
  }

  /** The size that the box of the screen has room for. */
  get room(): Size {
    return this.#screen.room()
  }

  /** Replace the screen by a history and continue at its offset. */
  restore({ offset, cols, rows, data }: History): void {
    this.#position.next = offset
    this.#acknowledged = 0
    this.#size = { cols, rows }
    this.#screen.restore(new TextEncoder().encode(data), this.#size, () => this.#drawn(offset))
  }

  /** Draw the new bytes of a frame; return false if bytes before it are missing. */
  draw(frame: ArrayBuffer): boolean {
    const fresh = this.#position.take(decodeOutput(frame))
    if (fresh === 'gap') return false
    const end = this.next
    if (fresh.length > 0) this.#screen.write(fresh, () => this.#drawn(end))
    return true
  }

  /** Draw the terminal in this size, which may not be the size of the box. */
  resize(size: Size): void {
    this.#size = size
    this.refit()
  }

  /** Fit the current size into changed space. */
  refit(): void {
    if (this.#size) this.#screen.resize(this.#size)
  }

  /** Acknowledge output when the screen has drawn all of it, and every 128 KiB before that. */
  #drawn(offset: number): void {
    if (offset < this.next && offset - this.#acknowledged < ACKNOWLEDGE_BYTES) return
    this.#acknowledged = offset
    this.#acknowledge(offset)
  }
}
