/** Where this page stands in a terminal's bytes: what of a frame is new, and whether one is missing. */
import type { Output } from '../api/frames.ts'

export class Position {
  /** The offset of the next byte we have not seen. */
  next = 0

  /** The bytes of this frame not seen before, or `hole` when some before it never came. */
  take({ offset, bytes }: Output): Uint8Array<ArrayBuffer> | 'hole' {
    if (offset > this.next) return 'hole'
    const fresh = bytes.subarray(Math.min(this.next - offset, bytes.length))
    this.next += fresh.length
    return fresh
  }
}
