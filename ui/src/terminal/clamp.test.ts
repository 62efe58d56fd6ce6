import { expect, test } from 'vitest'
import { Clamp } from './clamp.ts'

const encode = (text: string) => new TextEncoder().encode(text)
const decode = (chunks: Uint8Array[]) => new TextDecoder().decode(Buffer.concat(chunks))

const clamp = (text: string) => decode([new Clamp().feed(encode(text))])

function clampByByte(text: string): string {
  const filter = new Clamp()
  return decode(Array.from(encode(text), (byte) => filter.feed(new Uint8Array([byte])).slice()))
}

test.each([
  ['\x1b[2147483647b', '\x1b[9999b'],
  ['\x1b[10000S', '\x1b[9999S'],
  ['\x1b[9999S', '\x1b[9999S'],
  ['\x1b[1;99999999999999999999H', '\x1b[1;9999H'],
  ['\x1b[?2147483647h', '\x1b[?9999h'],
  ['\x1b[4:99999m', '\x1b[4:9999m'],
  ['\u009b2147483647L', '\u009b9999L'],
  ['\x1b]0;half\x1b[2147483647T', '\x1b]0;half\x1b[9999T'],
  ['\x1b[21474\n83647M', '\x1b[\n9999M'],
  ['\x1b\x00[2147483647Z', '\x1b\x00[9999Z'],
])('%j becomes %j however it is cut', (hostile, harmless) => {
  expect(clamp(hostile)).toBe(harmless)
  expect(clampByByte(hostile)).toBe(harmless)
})

test.each([
  'plain 2147483647 text',
  'ꛛ⛛ 雛 12345678 é', // bytes 0x9b that are no CSI
  '\x1b[38;2;12;34;56mcolour\x1b[0m 123456',
  '\x1b]0;title 123456789\x07',
  '\x1bP$q123456m\x1b\\',
  '\x1b[1234\x18 cancelled 123456',
  '\x1b(0 987654',
])('%j passes untouched however it is cut', (text) => {
  expect(clamp(text)).toBe(text)
  expect(clampByByte(text)).toBe(text)
})

test('an unfinished number waits for its end', () => {
  const filter = new Clamp()
  expect(decode([filter.feed(encode('\x1b[99'))])).toBe('\x1b[')
  expect(decode([filter.feed(encode('999X'))])).toBe('9999X')
})

test('text without sequences is not even copied', () => {
  const chunk = encode('just text')
  expect(new Clamp().feed(chunk)).toBe(chunk)
})
