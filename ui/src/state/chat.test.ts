import { expect, test } from 'vitest'
import type { SessionEvent } from '../api/types.ts'
import { EMPTY, fold, type Chat } from './chat.ts'

let seq = 0

function event(type: string, data: Record<string, unknown> = {}): SessionEvent {
  return { seq: ++seq, type, workerId: 'w', role: 'agent', timestamp: '2026-03-01T09:30:00.000Z', data }
}

function after(...events: SessionEvent[]): Chat {
  return events.reduce(fold, EMPTY)
}

function texts(chat: Chat): string[] {
  return chat.entries.map((entry) => (entry.kind === 'text' ? entry.text : entry.kind))
}

test('pieces of a text join and the last one may be empty', () => {
  const chat = after(
    event('agent_message', { text: 'a', partial: true }),
    event('agent_message', { text: 'b', partial: true }),
    event('agent_message', { text: '', partial: false }),
    event('agent_message', { text: 'c', partial: false }),
  )
  expect(texts(chat)).toEqual(['ab', 'c'])
})

test('a thought and another message do not join', () => {
  const chat = after(
    event('agent_thought', { text: 'hm', partial: true }),
    event('agent_message', { text: 'a', partial: true, messageId: '1' }),
    event('agent_message', { text: 'b', partial: true, messageId: '2' }),
  )
  expect(texts(chat)).toEqual(['hm', 'a', 'b'])
})

test('text after a tool call stands after it', () => {
  const chat = after(
    event('agent_message', { text: 'a', partial: true }),
    event('tool_call', { toolCallId: 't', title: 'edit' }),
    event('agent_message', { text: 'b', partial: true }),
  )
  expect(texts(chat)).toEqual(['a', 'tool', 'b'])
})

test('what is said of a tool call later replaces, what is not said stays', () => {
  const chat = after(
    event('tool_call', { toolCallId: 't', title: 'edit', status: 'pending', content: [1] }),
    event('tool_call_update', { toolCallId: 't', title: null, status: 'completed' }),
  )
  expect(chat.entries).toMatchObject([{ call: { title: 'edit', status: 'completed', content: [1] } }])
})

test('an unannounced update is shown, and an id that comes again in the next turn is another call', () => {
  const chat = after(
    event('tool_call_update', { toolCallId: 't', status: 'completed' }),
    event('user_prompt', { text: 'more', promptId: 'p' }),
    event('tool_call', { toolCallId: 't', status: 'pending' }),
  )
  expect(chat.entries.map((entry) => entry.kind)).toEqual(['tool', 'prompt', 'tool'])
})

test('a permission is one card from its question to its answer', () => {
  const asked = { id: 'q', toolCall: { toolCallId: 't' }, options: [{ optionId: 'y', name: 'Yes', kind: 'allow_once' }] }
  const chat = after(
    event('permission', { ...asked, status: 'pending' }),
    event('agent_message', { text: 'a', partial: false }),
    event('permission', { ...asked, status: 'selected', optionId: 'y', by: 'owner' }),
  )
  expect(chat.entries).toMatchObject([{ kind: 'permission', status: 'selected', optionId: 'y' }, { kind: 'text' }])
})

test('a turn is open between its start and its end, or the end of its agent', () => {
  const start = [event('user_prompt', { text: 'x', promptId: 'p' }), event('turn_start', { promptId: 'p' })]
  expect(after(...start).turn).toBe('p')
  expect(after(...start, event('turn_end', { stopReason: 'end_turn' }))).toMatchObject({ turn: undefined, entries: [{}] })
  const failed = after(...start, event('worker_failed', { error: 'it fell over' }))
  expect(failed).toMatchObject({ turn: undefined, entries: [{}, { kind: 'note', text: 'it fell over', bad: true }] })
})

test('a turn that ended otherwise says why', () => {
  expect(after(event('turn_end', { stopReason: 'max_tokens' })).entries).toMatchObject([{ text: 'The turn ended: max tokens.' }])
  expect(after(event('turn_end', { stopReason: 'error', error: 'no credit' })).entries).toMatchObject([{ text: 'no credit', bad: true }])
})

test('a plan replaces the one before it in the same turn', () => {
  const chat = after(
    event('plan', { entries: [{ content: 'one', status: 'pending' }] }),
    event('plan', { entries: [{ content: 'one', status: 'completed' }, { content: 'two', status: 'pending' }] }),
  )
  expect(chat.entries).toMatchObject([{ steps: [{ status: 'completed' }, { text: 'two' }] }])
})

test('nonsense of an agent does no harm', () => {
  const chat = after(
    event('tool_call', {}),
    event('plan', { entries: 'none' }),
    event('plan', { entries: [null, 7] }),
    event('permission', { id: 1, options: {}, status: 'pending' }),
    event('agent_content', { content: null }),
    event('agent_message', { text: 5, partial: true }),
    event('something_new', { x: 1 }),
  )
  expect(chat.entries.length).toBe(5)
})

test('the page holds the newest two hundred entries', () => {
  const many = Array.from({ length: 250 }, (_, n) => event('user_prompt', { text: `${n}`, promptId: `${n}` }))
  const { entries } = after(...many)
  expect([entries.length, entries[0]]).toMatchObject([200, { text: '50' }])
})
