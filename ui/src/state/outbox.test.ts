import { expect, test } from 'vitest'
import { Outbox } from './outbox.ts'

test('batches are numbered from one, each given once to a connection', () => {
  const outbox = new Outbox()
  outbox.push('a')
  expect(outbox.take()).toEqual([{ n: 1, data: 'a' }])
  outbox.push('b')
  expect(outbox.take()).toEqual([{ n: 2, data: 'b' }])
  expect(outbox.take()).toEqual([])
})

test('a new connection gets everything unacknowledged again, unchanged', () => {
  const outbox = new Outbox()
  outbox.push('a')
  outbox.take()
  outbox.push('b')
  outbox.take()
  outbox.acknowledge(1)
  outbox.rewind()
  expect(outbox.take()).toEqual([{ n: 2, data: 'b' }])
})

test('what was typed while nobody listened is joined, but never into a batch already told', () => {
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

test('an acknowledgement covers all before it and empties the outbox', () => {
  const outbox = new Outbox()
  for (const key of 'abc') {
    outbox.push(key)
    outbox.take()
  }
  outbox.acknowledge(3)
  expect(outbox.empty).toBe(true)
})

test('a long paste is cut into pieces that never split a character', () => {
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

test('half a character becomes a replacement character, which every encoder takes', () => {
  const outbox = new Outbox()
  outbox.push('a\ud83e')
  expect(outbox.take()).toEqual([{ n: 1, data: 'a\ufffd' }])
})
