import { expect, test } from 'vitest'
import { moveBar, MIN_SHARE } from './split.ts'

test('moving a bar gives space of one child to its neighbour', () => {
  expect(moveBar([0.5, 0.25, 0.25], 0, 0.1)).toEqual([0.6, 0.15, 0.25])
})

test('no child gets smaller than the minimum', () => {
  expect(moveBar([0.5, 0.5], 0, 0.9)).toEqual([0.9, MIN_SHARE].map((size) => expect.closeTo(size)))
  expect(moveBar([0.5, 0.5], 0, -0.9)).toEqual([MIN_SHARE, 0.9].map((size) => expect.closeTo(size)))
})
