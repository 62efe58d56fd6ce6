/**
 * Keeps absurd counts from freezing the page: `CSI 2147483647 b` and its kind make xterm loop for minutes.
 * Numbers in control sequences are cut to 9999 before xterm sees them; everything else passes untouched.
 *
 * A number is held back until the byte after it, so it may be split over chunks anywhere.
 */
const LIMIT = 9999
const ESC = 0x1b
const CSI_HIGH = 0x9b // U+009B is CSI in one character; in UTF-8 it comes after 0xc2

type State = 'text' | 'escape' | 'sequence'

export class Clamp {
  #state: State = 'text'
  #before = 0
  #number: number | undefined

  feed(chunk: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    if (this.#state === 'text' && !chunk.includes(ESC) && !chunk.includes(CSI_HIGH)) {
      this.#before = chunk.at(-1) ?? this.#before
      return chunk
    }
    const out = new Uint8Array(chunk.length + 4) // a number held back from the last chunk has at most 4 digits
    let length = 0
    for (const byte of chunk) {
      if (this.#state === 'sequence') {
        if (isDigit(byte)) {
          this.#number = Math.min((this.#number ?? 0) * 10 + byte - 0x30, LIMIT)
          continue
        }
        if (this.#number !== undefined && !isControl(byte)) {
          for (const digit of String(this.#number)) out[length++] = digit.charCodeAt(0)
          this.#number = undefined
        }
      }
      out[length++] = byte
      this.#state = this.#after(byte)
      this.#before = byte
    }
    return out.subarray(0, length)
  }

  #after(byte: number): State {
    if (byte === ESC) return 'escape'
    if (byte === CSI_HIGH && this.#before === 0xc2) return 'sequence'
    if (this.#state === 'escape') return byte === 0x5b ? 'sequence' : isControl(byte) ? 'escape' : 'text'
    if (this.#state === 'sequence') return (byte >= 0x20 && byte < 0x40) || isControl(byte) ? 'sequence' : 'text'
    return 'text'
  }
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39
}

/** Controls inside a sequence are executed without ending it, except CAN, SUB and ESC. */
function isControl(byte: number): boolean {
  return (byte < 0x20 || byte === 0x7f) && byte !== 0x18 && byte !== 0x1a && byte !== ESC
}
