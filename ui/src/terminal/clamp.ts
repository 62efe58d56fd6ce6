/**
 * Keeps absurd counts from freezing the page: `CSI 2147483647 b` and its kind make xterm loop for minutes.
 * Numbers in control sequences are cut to 9999 before xterm sees them, and counts of lines to the lines there
 * are (9999 of those still take it 30 ms a sequence). Everything else passes untouched.
 *
 * Parameters are held back until the byte that ends their sequence, so it may be cut into chunks anywhere.
 */
const LIMIT = 9999
const LONGEST = 256 // bytes of parameters; xterm reads 32 numbers and no more
const ESC = 0x1b
const CSI_HIGH = 0x9b // U+009B is CSI in one character; in UTF-8 it comes after 0xc2
const LINE_COUNTS = new Set(Array.from('STLM', (final) => final.charCodeAt(0)))

type State = 'text' | 'escape' | 'sequence'

export class Clamp {
  #state: State = 'text'
  #before = 0
  #held = ''

  feed(chunk: Uint8Array<ArrayBuffer>, lines: number): Uint8Array<ArrayBuffer> {
    if (this.#state === 'text' && !chunk.includes(ESC) && !chunk.includes(CSI_HIGH)) {
      this.#before = chunk.at(-1) ?? this.#before
      return chunk
    }
    const out = new Uint8Array(chunk.length + LONGEST)
    let length = 0
    for (const byte of chunk) {
      if (this.#state === 'sequence' && isParameter(byte)) {
        if (this.#held.length < LONGEST) this.#held += String.fromCharCode(byte)
      } else {
        if (this.#held && !isControl(byte)) {
          for (const unit of this.#release(LINE_COUNTS.has(byte) ? lines : LIMIT)) out[length++] = unit.charCodeAt(0)
        }
        out[length++] = byte
        this.#state = this.#after(byte)
      }
      this.#before = byte
    }
    return out.subarray(0, length)
  }

  #release(limit: number): string {
    const held = this.#held.replace(/\d+/g, (number) => (Number(number) > limit ? String(limit) : number))
    this.#held = ''
    return held
  }

  #after(byte: number): State {
    if (byte === ESC) return 'escape'
    if (byte === CSI_HIGH && this.#before === 0xc2) return 'sequence'
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
