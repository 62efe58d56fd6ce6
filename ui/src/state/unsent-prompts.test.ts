import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fakeStorage, fillStorage } from '../testing/storage.ts'
import { UnsentPrompts } from './unsent-prompts.ts'

const prompt = (promptId: string, at = promptId) => ({ promptId, text: `say ${promptId}`, imageIds: [], at })

let storage: Map<string, string>

beforeEach(() => {
  storage = fakeStorage()
})

afterEach(() => {
  vi.restoreAllMocks()
})

test('unconfirmed prompts survive a reload, oldest first', () => {
  const before = new UnsentPrompts('w')
  before.add(prompt('b'))
  before.add(prompt('a'))
  expect(new UnsentPrompts('w').all).toEqual([prompt('a'), prompt('b')])
  expect(new UnsentPrompts('other').all).toEqual([])
})

test('removed prompts are deleted from the storage', () => {
  const unsent = new UnsentPrompts('w')
  unsent.add(prompt('a'))
  unsent.remove('a')
  expect([unsent.all, new UnsentPrompts('w').all, storage.size]).toEqual([[], [], 0])
})

test('a refused prompt is stored with its reason until it is sent again', () => {
  const unsent = new UnsentPrompts('w')
  unsent.add(prompt('a'))
  unsent.mark('a', 'the queue is full')
  expect(new UnsentPrompts('w').all).toEqual([{ ...prompt('a'), problem: 'the queue is full' }])
  unsent.mark('a', undefined)
  expect(new UnsentPrompts('w').all).toEqual([prompt('a')])
})

test('two pages do not overwrite prompts of each other', () => {
  const [one, two] = [new UnsentPrompts('w'), new UnsentPrompts('w')]
  one.add(prompt('a'))
  two.add(prompt('b'))
  one.remove('a')
  expect(new UnsentPrompts('w').all).toEqual([prompt('b')])
})

test('invalid data in the storage is ignored', () => {
  storage.set('bullpen.unsent.w.x', '{"promptId":1}')
  storage.set('bullpen.unsent.w.y', 'no JSON')
  expect(new UnsentPrompts('w').all).toEqual([])
})

test('prompts that do not fit into the storage are kept in memory', () => {
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
