import { expect, test } from 'vitest'
import { OutputPosition } from './output-position.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const text = (data: Uint8Array | 'gap') => (data === 'gap' ? data : new TextDecoder().decode(data))

function at(next: number): OutputPosition {
  const position = new OutputPosition()
  position.next = next
  return position
}

test('a frame at the position is taken whole', () => {
  const position = at(10)
  expect(text(position.take({ offset: 10, bytes: bytes('abc') }))).toBe('abc')
  expect(position.next).toBe(13)
})

test('a frame before the position gives no bytes', () => {
  const position = at(10)
  expect(text(position.take({ offset: 4, bytes: bytes('abc') }))).toBe('')
  expect(position.next).toBe(10)
})

test('of an overlapping frame only the new bytes are taken', () => {
  const position = at(10)
  expect(text(position.take({ offset: 8, bytes: bytes('abcd') }))).toBe('cd')
  expect(position.next).toBe(12)
})

test('a frame after the position is a gap and changes nothing', () => {
  const position = at(10)
  expect(position.take({ offset: 11, bytes: bytes('abc') })).toBe('gap')
  expect(position.next).toBe(10)
})
