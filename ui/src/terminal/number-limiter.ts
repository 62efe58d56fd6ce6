/**
 * Limit the numbers in control sequences, so that hostile output cannot freeze the page: a sequence such as
 * `CSI 2147483647 b` makes xterm loop for minutes. Numbers are limited to 9999, and line counts to the height of the
 * screen, because 9999 lines still take 30 ms for each sequence. All other bytes stay unchanged.
 *
 * Parameters are held back until the end of their sequence, so output may be split into chunks at any byte.
 */
const MAX_NUMBER = 9999
const MAX_PARAMETER_BYTES = 256 // xterm reads at most 32 numbers
const ESC = 0x1b
const CSI_HIGH = 0x9b // U+009B is CSI in one character; in UTF-8 it comes after 0xc2
const LINE_COUNTS = new Set(Array.from('STLM', (final) => final.charCodeAt(0)))

type State = 'text' | 'escape' | 'sequence'

/** The filter of one output stream. */
export class NumberLimiter {
  #state: State = 'text'
  #previousByte = 0
  #held = ''

  /** Return a chunk with limited numbers; `lines` is the height of the screen. */
  feed(chunk: Uint8Array<ArrayBuffer>, lines: number): Uint8Array<ArrayBuffer> {
    if (this.#state === 'text' && !chunk.includes(ESC) && !chunk.includes(CSI_HIGH)) {
      this.#previousByte = chunk.at(-1) ?? this.#previousByte
      return chunk
    }
    const out = new Uint8Array(chunk.length + MAX_PARAMETER_BYTES)
    let length = 0
    for (const byte of chunk) {
      if (this.#state === 'sequence' && isParameter(byte)) {
        if (this.#held.length < MAX_PARAMETER_BYTES) this.#held += String.fromCharCode(byte)
      } else {
        if (this.#held && !isControl(byte)) {
          for (const unit of this.#release(LINE_COUNTS.has(byte) ? lines : MAX_NUMBER)) out[length++] = unit.charCodeAt(0)
        }
        out[length++] = byte
        this.#state = this.#nextState(byte)
      }
      this.#previousByte = byte
    }
    return out.subarray(0, length)
  }

  /** Return the held part of a sequence, with each number above the limit replaced by it. */
  #release(limit: number): string {
    const held = this.#held.replace(/\d+/g, (number) => (Number(number) > limit ? String(limit) : number))
    this.#held = ''
    return held
  }

  #nextState(byte: number): State {
    if (byte === ESC) return 'escape'
    if (byte === CSI_HIGH && this.#previousByte === 0xc2) return 'sequence'
    if (isControl(byte)) return this.#state
    if (this.#state === 'escape' && byte === 0x5b) return 'sequence'
    if (this.#state === 'sequence' && byte >= 0x20 && byte < 0x40) return 'sequence' // intermediates
    return 'text'
  }
}

/** Digits, separators and private markers. */
function isParameter(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x3f
}

/** Controls inside a sequence are executed without ending it, except CAN, SUB and ESC. */
function isControl(byte: number): boolean {
  return (byte < 0x20 || byte === 0x7f) && byte !== 0x18 && byte !== 0x1a && byte !== ESC
}
