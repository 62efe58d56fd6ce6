import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fakeStorage, fillStorage } from '../testing/storage.ts'
import { UnsentPrompts } from './unsent.ts'

const prompt = (promptId: string, at = promptId) => ({ promptId, text: `say ${promptId}`, imageIds: [], at })

let storage: Map<string, string>

beforeEach(() => {
  storage = fakeStorage()
})

afterEach(() => {
  vi.restoreAllMocks()
})

test('what was not seen in the stream is there after a reload, oldest first', () => {
  const before = new UnsentPrompts('w')
  before.add(prompt('b'))
  before.add(prompt('a'))
  expect(new UnsentPrompts('w').all).toEqual([prompt('a'), prompt('b')])
  expect(new UnsentPrompts('other').all).toEqual([])
})

test('what was seen is gone for good', () => {
  const unsent = new UnsentPrompts('w')
  unsent.add(prompt('a'))
  unsent.remove('a')
  expect([unsent.all, new UnsentPrompts('w').all, storage.size]).toEqual([[], [], 0])
})

test('a refusal is kept with its reason until it is tried again', () => {
  const unsent = new UnsentPrompts('w')
  unsent.add(prompt('a'))
  unsent.mark('a', 'the queue is full')
  expect(new UnsentPrompts('w').all).toEqual([{ ...prompt('a'), problem: 'the queue is full' }])
  unsent.mark('a', undefined)
  expect(new UnsentPrompts('w').all).toEqual([prompt('a')])
})

test('two pages overwrite nothing of each other', () => {
  const [one, two] = [new UnsentPrompts('w'), new UnsentPrompts('w')]
  one.add(prompt('a'))
  two.add(prompt('b'))
  one.remove('a')
  expect(new UnsentPrompts('w').all).toEqual([prompt('b')])
})

test('nonsense in the storage is ignored', () => {
  storage.set('bullpen.unsent.w.x', '{"promptId":1}')
  storage.set('bullpen.unsent.w.y', 'no JSON')
  expect(new UnsentPrompts('w').all).toEqual([])
})

test('what no longer fits into the storage is known as long as the page is', () => {
  const warned = vi.spyOn(console, 'warn').mockReturnValue()
  const unsent = new UnsentPrompts('w')
  unsent.add(prompt('a'))
  fillStorage()
  unsent.add(prompt('b'))
  unsent.mark('a', 'the queue is full')
  expect(unsent.all).toEqual([{ ...prompt('a'), problem: 'the queue is full' }, prompt('b')])
  expect(new UnsentPrompts('w').all).toEqual([prompt('a')])
  expect(warned).toHaveBeenCalledTimes(2)
})
