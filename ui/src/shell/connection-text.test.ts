import { expect, test } from 'vitest'
import { indicatorOf } from './connection-text.ts'

test('an open connection is green', () => {
  expect(indicatorOf('open', undefined, true, 0)).toMatchObject({ tone: 'good', label: 'Connected' })
})

test('a connection that is being opened is yellow', () => {
  expect(indicatorOf('waiting', 1000, true, 2000)).toMatchObject({ tone: 'waiting', label: 'Reconnecting' })
  expect(indicatorOf('connecting', 1000, true, 2000)).toMatchObject({ tone: 'waiting', label: 'Reconnecting' })
  expect(indicatorOf('connecting', undefined, true, 0)).toMatchObject({ tone: 'waiting', label: 'Connecting' })
})

test('a connection is red without a network, after a long time without an answer, or when it was closed for good', () => {
  expect(indicatorOf('waiting', 1000, false, 2000)).toMatchObject({ tone: 'bad', label: 'Disconnected' })
  expect(indicatorOf('waiting', 1000, true, 60_000)).toMatchObject({ tone: 'bad', label: 'Disconnected' })
  expect(indicatorOf('closed', 1000, true, 2000)).toMatchObject({ tone: 'bad', label: 'Disconnected' })
})
