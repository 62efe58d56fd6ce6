/** The messages of the terminal socket: output with its offset in binary frames, everything else as JSON. */

export interface Size {
  cols: number
  rows: number
}

export interface OutputFrame {
  offset: number
  bytes: Uint8Array<ArrayBuffer>
}

/** Bytes that draw the screen as it was at `offset` on an empty terminal. */
export interface History {
  type: 'history'
  run: number
  offset: number
  cols: number
  rows: number
  data: string
}

export type TerminalMessage =
  | History
  | { type: 'ack'; n: number }
  | { type: 'heartbeat' }
  | { type: 'size'; cols: number; rows: number; owner: boolean }
  | { type: 'exit'; exitCode: number | null; signal: number | null }
  | { type: 'error'; error: string; message: string }

const OFFSET_BYTES = 8

/** Decode a binary frame: the offset of its first byte (8 bytes, big-endian), then the output. Offsets are exact up to 2^53. */
export function decodeOutput(frame: ArrayBuffer): OutputFrame {
  if (frame.byteLength < OFFSET_BYTES) throw new RangeError(`a frame of ${frame.byteLength} bytes has no offset`)
  const offset = Number(new DataView(frame).getBigUint64(0))
  return { offset, bytes: new Uint8Array(frame, OFFSET_BYTES) }
}
