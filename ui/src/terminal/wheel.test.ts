import { expect, test } from 'vitest'
import { WheelLines } from './wheel.ts'

const PIXELS = 0
const LINES = 1
const PAGES = 2

test('a turn of the wheel becomes lines in all units', () => {
  expect(new WheelLines().lines({ deltaY: -1200, deltaMode: PIXELS }, 16, 24)).toBe(-75)
  expect(new WheelLines().lines({ deltaY: 3, deltaMode: LINES }, 16, 24)).toBe(3)
  expect(new WheelLines().lines({ deltaY: -1, deltaMode: PAGES }, 16, 24)).toBe(-24)
})

test('fractions of a line are kept for the next turn in the same direction', () => {
  const wheel = new WheelLines()
  expect([10, 10, 10].map((deltaY) => wheel.lines({ deltaY, deltaMode: PIXELS }, 16, 24))).toEqual([0, 1, 0])
  expect(wheel.lines({ deltaY: -10, deltaMode: PIXELS }, 16, 24)).toBe(-0)
  expect(wheel.lines({ deltaY: -10, deltaMode: PIXELS }, 16, 24)).toBe(-1)
})
