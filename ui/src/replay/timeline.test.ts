import { expect, test } from 'vitest'
import type { Marker, Timeline } from '../api/types/timeline.ts'
import { timeAfterIdle, firstVisibleTime, elapsed, firstBoundary, marksOf, nextMarker, fractionOf, previousMarker, sizeAt, untilLastOutput, clampTime } from './timeline.ts'

const marker = (seq: number, time: number, kind: Marker['kind']): Marker => ({ seq, time, kind, label: kind, workerId: null })

const timeline: Timeline = {
  begins: 1000,
  ends: 11_000,
  head: 9,
  markers: [marker(1, 1000, 'prompt'), marker(2, 6000, 'tool'), marker(3, 6010, 'permission'), marker(4, 11_000, 'error')],
  truncated: false,
  terminals: [],
  moment: null,
}

test('positions and times stay between the beginning and the end', () => {
  expect([0, 1000, 6000, 99_000].map((time) => fractionOf(timeline, time))).toEqual([0, 0, 0.5, 1])
  expect([0, 7000, 99_000].map((time) => clampTime(timeline, time))).toEqual([1000, 7000, 11_000])
  expect(fractionOf({ ...timeline, ends: 1000 }, 1000)).toBe(1)
})

test('of overlapping marks the most important stays', () => {
  expect(marksOf(timeline, 100).map(({ marker: { kind } }) => kind)).toEqual(['prompt', 'permission', 'error'])
  expect(marksOf(timeline, 10_000)).toHaveLength(4)
})

test('the time line ends with the last output of a terminal', () => {
  const line = { workerId: 'w', run: 1, start: 0, end: 9, points: [[900, 0], [20_000, 9]], sizes: [] }
  expect(untilLastOutput({ ...timeline, terminals: [line] }).ends).toBe(20_000)
  expect(untilLastOutput({ ...timeline, terminals: [{ ...line, points: [] }] }).ends).toBe(11_000)
})

test('a replay begins at the first mark or output', () => {
  const line = { workerId: 'w', run: 1, start: 0, end: 9, points: [[1100, 0], [1300, 9]], sizes: [] }
  const quiet = { ...timeline, markers: [] }
  expect(firstVisibleTime({ ...timeline, begins: 0 })).toBe(1000)
  expect(firstVisibleTime({ ...quiet, terminals: [line] })).toBe(1300)
  expect(firstVisibleTime(quiet)).toBe(quiet.begins)
})

test('the next and previous marks are found', () => {
  expect(nextMarker(timeline, 1000)?.seq).toBe(2)
  expect(previousMarker(timeline, 6010)?.seq).toBe(2)
  expect(nextMarker(timeline, 11_000)).toBeUndefined()
})

test('long pauses are skipped up to shortly before the next event', () => {
  expect(timeAfterIdle(1000, [9000, 500, 60_000])).toBe(8600)
  expect(timeAfterIdle(1000, [2500])).toBe(1000)
  expect(timeAfterIdle(1000, [])).toBe(1000)
})

test('a terminal has the size that it had at an offset', () => {
  const line = { workerId: 'w', run: 1, start: 0, end: 99, points: [], sizes: [[0, 80, 24], [50, 120, 40]] }
  expect(sizeAt(line, 49)).toEqual({ cols: 80, rows: 24 })
  expect(sizeAt(line, 50)).toEqual({ cols: 120, rows: 40 })
  expect(sizeAt({ ...line, sizes: [] }, 50)).toEqual({ cols: 80, rows: 24 })
})

test('elapsed time is formatted as in a media player', () => {
  expect([0, 65_000, 7_207_000].map(elapsed)).toEqual(['0:00', '1:05', '2:00:07'])
})

test('a recording without its beginning is shown from the first line end or sequence', () => {
  const boundary = (text: string) => firstBoundary(new TextEncoder().encode(text))
  expect(boundary('8;5;12mhalf a line\r\nwhole\r\n')).toBe('8;5;12mhalf a line\r\n'.length)
  expect(boundary('38;5;1m\u001b[mred')).toBe('38;5;1m'.length)
  expect(boundary('one line')).toBe(-1)
})
