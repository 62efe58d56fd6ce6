/** Track the position in a terminal's output: find the new bytes of a frame, and detect missing ones. */
import type { OutputFrame } from '../api/terminal-messages.ts'

/** The position of this page in the output of one terminal run. */
export class OutputPosition {
  /** The offset of the next expected byte. */
  next = 0

  /** Return the new bytes of a frame and advance, or return `gap` if bytes before it are missing. */
  take({ offset, bytes }: OutputFrame): Uint8Array<ArrayBuffer> | 'gap' {
    if (offset > this.next) return 'gap'
    const fresh = bytes.subarray(Math.min(this.next - offset, bytes.length))
    this.next += fresh.length
    return fresh
  }
}
