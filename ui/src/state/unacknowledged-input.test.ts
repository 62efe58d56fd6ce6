import { expect, test } from 'vitest'
import { UnacknowledgedInput } from './unacknowledged-input.ts'

test('batches are numbered from one, and each is sent once per connection', () => {
  const input = new UnacknowledgedInput()
  input.push('a')
  expect(input.take()).toEqual([{ n: 1, data: 'a' }])
  input.push('b')
  expect(input.take()).toEqual([{ n: 2, data: 'b' }])
  expect(input.take()).toEqual([])
})

test('a new connection gets all unacknowledged batches again, unchanged', () => {
  const input = new UnacknowledgedInput()
  input.push('a')
  input.take()
  input.push('b')
  input.take()
  input.acknowledge(1)
  input.rewind()
  expect(input.take()).toEqual([{ n: 2, data: 'b' }])
})

test('input without a connection is joined, but never into a batch that was sent before', () => {
  const input = new UnacknowledgedInput()
  input.push('told')
  input.take()
  input.rewind()
  input.push('x')
  input.push('y')
  expect(input.take()).toEqual([
    { n: 1, data: 'told' },
    { n: 2, data: 'xy' },
  ])
})

test('an acknowledgement covers all earlier batches', () => {
  const input = new UnacknowledgedInput()
  for (const key of 'abc') {
    input.push(key)
    input.take()
  }
  input.acknowledge(3)
  expect(input.empty).toBe(true)
})

test('a long paste is split into batches without splitting a character', () => {
  const input = new UnacknowledgedInput()
  const paste = 'x' + '🦊'.repeat(20_000)
  input.push(paste)
  const batches = input.take()
  expect(batches.map((batch) => batch.data).join('')).toBe(paste)
  expect(batches.length).toBeGreaterThan(2)
  for (const batch of batches) {
    expect(batch.data.isWellFormed()).toBe(true)
    expect(batch.data.length).toBeLessThanOrEqual(16_384)
  }
})

test('half a surrogate pair becomes a replacement character', () => {
  const input = new UnacknowledgedInput()
  input.push('a\ud83e')
  expect(input.take()).toEqual([{ n: 1, data: 'a\ufffd' }])
})
