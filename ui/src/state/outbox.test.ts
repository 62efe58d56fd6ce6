import { expect, test } from 'vitest'
import { Outbox } from './outbox.ts'

test('batches are numbered from one, and each is sent once per connection', () => {
  const outbox = new Outbox()
  outbox.push('a')
  expect(outbox.take()).toEqual([{ n: 1, data: 'a' }])
  outbox.push('b')
  expect(outbox.take()).toEqual([{ n: 2, data: 'b' }])
  expect(outbox.take()).toEqual([])
})

test('a new connection gets all unacknowledged batches again, unchanged', () => {
  const outbox = new Outbox()
  outbox.push('a')
  outbox.take()
  outbox.push('b')
  outbox.take()
  outbox.acknowledge(1)
  outbox.rewind()
  expect(outbox.take()).toEqual([{ n: 2, data: 'b' }])
})

test('input without a connection is joined, but never into a batch that was sent before', () => {
  const outbox = new Outbox()
  outbox.push('told')
  outbox.take()
  outbox.rewind()
  outbox.push('x')
  outbox.push('y')
  expect(outbox.take()).toEqual([
    { n: 1, data: 'told' },
    { n: 2, data: 'xy' },
  ])
})

test('an acknowledgement covers all earlier batches', () => {
  const outbox = new Outbox()
  for (const key of 'abc') {
    outbox.push(key)
    outbox.take()
  }
  outbox.acknowledge(3)
  expect(outbox.empty).toBe(true)
})

test('a long paste is split into batches without splitting a character', () => {
  const outbox = new Outbox()
  const paste = 'x' + '🦊'.repeat(20_000)
  outbox.push(paste)
  const batches = outbox.take()
  expect(batches.map((batch) => batch.data).join('')).toBe(paste)
  expect(batches.length).toBeGreaterThan(2)
  for (const batch of batches) {
    expect(batch.data.isWellFormed()).toBe(true)
    expect(batch.data.length).toBeLessThanOrEqual(16_384)
  }
})

test('half a surrogate pair becomes a replacement character', () => {
  const outbox = new Outbox()
  outbox.push('a\ud83e')
  expect(outbox.take()).toEqual([{ n: 1, data: 'a\ufffd' }])
})
