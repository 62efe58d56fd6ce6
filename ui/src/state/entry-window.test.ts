import { expect, test } from 'vitest'
import type { SessionEvent } from '../api/types/events.ts'
import { append, around, atEnd, earlier, emptyWindow, hasEarlier, later, prepend, shownEntries, MAX_SHOWN, type EntryWindow } from './entry-window.ts'

const prompt = (seq: number): SessionEvent => ({ seq, type: 'user_prompt', workerId: 'w', role: 'a', timestamp: '', data: { text: `${seq}`, promptId: `${seq}` } })
const prompts = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => prompt(from + n))
const keys = (window: EntryWindow) => [shownEntries(window)[0]?.key, shownEntries(window).at(-1)?.key]
const long = () => append(emptyWindow(701), prompts(701, 1000), true)

test('the newest two hundred entries are shown', () => {
  expect(keys(long())).toEqual([801, 1000])
  expect(shownEntries(long()).length).toBe(MAX_SHOWN)
})

test('a following window moves to new entries, a window that was scrolled up stays', () => {
  expect(keys(append(long(), [prompt(1001)], true))).toEqual([802, 1001])
  expect(keys(append(earlier(long()), [prompt(1001)], false))).toEqual([741, 940])
})

test('a window that was scrolled up grows to two hundred entries', () => {
  const few = append(emptyWindow(1), prompts(1, 50), true)
  expect(keys(append(few, prompts(51, 120), false))).toEqual([1, 120])
  expect(keys(append(few, prompts(51, 400), false))).toEqual([1, 200])
})

test('the window moves up and down over all loaded entries', () => {
  let window = long()
  for (const first of [741, 701, 701]) {
    window = earlier(window)
    expect(keys(window)).toEqual([first, first + MAX_SHOWN - 1])
  }
  window = prepend(window, prompts(1, 700), 1)
  expect(keys(window)).toEqual([701, 900])
  window = earlier(window)
  expect([keys(window), hasEarlier(window)]).toEqual([[641, 840], true])
  for (let n = 0; n < 20; n++) window = earlier(window)
  expect([keys(window), hasEarlier(window)]).toEqual([[1, 200], false])
  for (let n = 0; n < 20; n++) window = later(window)
  expect(keys(window)).toEqual([801, 1000])
})

test('a text that was split between two loaded parts becomes one entry', () => {
  const piece = (seq: number): SessionEvent => ({ ...prompt(seq), type: 'agent_message', data: { text: `${seq}`, partial: true } })
  const window = prepend(append(emptyWindow(3), [piece(3), piece(4)], true), [prompt(1), piece(2)], 1)
  expect(window).toMatchObject({ entries: [{ key: 1 }, { key: 2, text: '234' }], start: 1, end: 2 })
})

test('the window can be moved to any entry', () => {
  expect(keys(around(long(), 20))).toEqual([701, 900])
  expect(keys(around(long(), 290))).toEqual([801, 1000])
  expect(keys(atEnd(around(long(), 20)))).toEqual([801, 1000])
})

test('the oldest entries are dropped up to a prompt and can be loaded again', () => {
  const window = append(append(emptyWindow(1), prompts(1, 3999), true), prompts(4000, 4100), true)
  expect(window.entries.length).toBeLessThanOrEqual(4000)
  expect([window.from, window.entries[0]?.key]).toEqual([2101, 2101])
  expect(keys(window)).toEqual([3901, 4100])
})
