import { expect, test } from 'vitest'
import { indicatorOf } from './connection.ts'

test('R6: green when connected', () => {
  expect(indicatorOf('open', undefined, true, 0)).toMatchObject({ tone: 'good', label: 'Connected' })
})

test('R6: yellow while it comes back', () => {
  expect(indicatorOf('waiting', 1000, true, 2000)).toMatchObject({ tone: 'waiting', label: 'Reconnecting' })
  expect(indicatorOf('connecting', 1000, true, 2000)).toMatchObject({ tone: 'waiting', label: 'Reconnecting' })
  expect(indicatorOf('connecting', undefined, true, 0)).toMatchObject({ tone: 'waiting', label: 'Connecting' })
})

test('R6: red when it is gone: no network, no answer for long, or closed for good', () => {
  expect(indicatorOf('waiting', 1000, false, 2000)).toMatchObject({ tone: 'bad', label: 'Disconnected' })
  expect(indicatorOf('waiting', 1000, true, 60_000)).toMatchObject({ tone: 'bad', label: 'Disconnected' })
  expect(indicatorOf('closed', 1000, true, 2000)).toMatchObject({ tone: 'bad', label: 'Disconnected' })
})
