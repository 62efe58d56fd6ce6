import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { flushRemembered, forgetOld, Remembered } from './remembered.ts'

class CountingStorage {
  readonly items = new Map<string, string>()
  writes = 0
  get length(): number {
    return this.items.size
  }
  key(n: number): string | null {
    return [...this.items.keys()][n] ?? null
  }
  getItem(key: string): string | null {
    return this.items.get(key) ?? null
  }
  setItem(key: string, value: string): void {
    this.writes++
    this.items.set(key, value)
  }
  removeItem(key: string): void {
    this.items.delete(key)
  }
}

let storage: CountingStorage

beforeEach(() => {
  vi.useFakeTimers()
  storage = new CountingStorage()
  vi.stubGlobal('localStorage', storage)
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('many changes are written once, 500 ms after the last', () => {
  const draft = new Remembered('draft', '')
  for (let n = 0; n < 50; n++) {
    draft.value = 'x'.repeat(n + 1)
    vi.advanceTimersByTime(400)
  }
  expect(storage.writes).toBe(0)
  vi.advanceTimersByTime(100)
  expect(storage.writes).toBe(1)
  expect(new Remembered('draft', '').value).toBe('x'.repeat(50))
})

test('a flush writes pending changes immediately and once', () => {
  new Remembered('tab', 'a').value = 'b'
  flushRemembered()
  vi.advanceTimersByTime(1000)
  expect(storage.writes).toBe(1)
  expect(new Remembered('tab', 'a').value).toBe('b')
})

test('an initial value is not stored', () => {
  const tab = new Remembered('tab', 'a')
  tab.value = 'b'
  flushRemembered()
  tab.forget()
  expect(storage.length).toBe(0)
})

test('invalid data in the storage is ignored', () => {
  storage.items.set('bullpen.view.tab', '{')
  expect(new Remembered('tab', 'a').value).toBe('a')
})

test('only values that were not changed for months are deleted', () => {
  new Remembered('old', 0).value = 1
  flushRemembered()
  storage.items.set('bullpen.secret', 'not ours')
  vi.advanceTimersByTime(91 * 24 * 3600 * 1000)
  new Remembered('young', 0).value = 1
  flushRemembered()
  forgetOld()
  expect([...storage.items.keys()]).toEqual(['bullpen.secret', 'bullpen.view.young'])
})
