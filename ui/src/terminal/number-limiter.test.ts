import { expect, test } from 'vitest'
import { NumberLimiter } from './number-limiter.ts'

const LINES = 24
const encode = (text: string) => new TextEncoder().encode(text)
const decode = (chunks: Uint8Array[]) => new TextDecoder().decode(Buffer.concat(chunks))

const limit = (text: string) => decode([new NumberLimiter().feed(encode(text), LINES)])

function limitByByte(text: string): string {
  const filter = new NumberLimiter()
  return decode(Array.from(encode(text), (byte) => filter.feed(new Uint8Array([byte]), LINES).slice()))
}

test.each([
  ['\x1b[2147483647b', '\x1b[9999b'],
  ['\x1b[10000@', '\x1b[9999@'],
  ['\x1b[1;99999999999999999999H', '\x1b[1;9999H'],
  ['\x1b[?2147483647h', '\x1b[?9999h'],
  ['\x1b[4:99999m', '\x1b[4:9999m'],
  ['\x1b]0;half\x1b[2147483647I', '\x1b]0;half\x1b[9999I'],
  ['\x1b[21474\n83647X', '\x1b[\n9999X'],
  ['\x1b\x00[2147483647Z', '\x1b\x00[9999Z'],
  ['\x1b[2147483647S', '\x1b[24S'],
  ['\u009b9999L', '\u009b24L'],
  ['\x1b[25;1M', '\x1b[24;1M'],
  [`\x1b[9999${';1'.repeat(500)}T`, `\x1b[24${';1'.repeat(126)}T`],
])('%j becomes %j wherever it is split', (hostile, harmless) => {
  expect(limit(hostile)).toBe(harmless)
  expect(limitByByte(hostile)).toBe(harmless)
})

test.each([
  'plain 2147483647 text',
  'ꛛ⛛ 雛 12345678 é', // bytes 0x9b that are not CSI
  '\x1b[38;2;12;34;56mcolour\x1b[0m 123456',
  '\x1b]0;title 123456789\x07',
  '\x1bP$q123456m\x1b\\',
  '\x1b[1234\x18 cancelled 123456',
  '\x1b(0 987654',
  '\x1b[24S\x1b[3L\x1b[M',
  '\x1b[9999 q\x1b[9999;9999H',
])('%j stays unchanged wherever it is split', (text) => {
  expect(limit(text)).toBe(text)
  expect(limitByByte(text)).toBe(text)
})

test('parameters are held back until the end of their sequence', () => {
  const filter = new NumberLimiter()
  expect(decode([filter.feed(encode('\x1b[99'), LINES)])).toBe('\x1b[')
  expect(decode([filter.feed(encode('999X'), LINES)])).toBe('9999X')
})

test('text without sequences is not copied', () => {
  const chunk = encode('just text')
  expect(new NumberLimiter().feed(chunk, LINES)).toBe(chunk)
})
