/** Track the position in a terminal's output: find the new bytes of a frame, and detect missing ones. */
import type { Output } from '../api/frames.ts'

export class Position {
  /** The offset of the next expected byte. */
  next = 0

  /** Return the new bytes of a frame and advance, or return `hole` if bytes before it are missing. */
  take({ offset, bytes }: Output): Uint8Array<ArrayBuffer> | 'hole' {
    if (offset > this.next) return 'hole'
    const fresh = bytes.subarray(Math.min(this.next - offset, bytes.length))
    this.next += fresh.length
    return fresh
  }
}
