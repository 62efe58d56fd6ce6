import { expect, test } from 'vitest'
import { decodeOutput } from './terminal-messages.ts'

test('a frame is a big-endian offset of eight bytes followed by the output', () => {
  const frame = new Uint8Array([0, 0, 0, 1, 0, 0, 0, 2, 0x68, 0x69]).buffer
  const { offset, bytes } = decodeOutput(frame)
  expect(offset).toBe(2 ** 32 + 2)
  expect(new TextDecoder().decode(bytes)).toBe('hi')
})

test('a frame too short for its offset is refused', () => {
  expect(() => decodeOutput(new ArrayBuffer(7))).toThrow(RangeError)
})
