import { expect, test } from 'vitest'
import type { SessionEvent } from '../api/types/events.ts'
import { fold, join, type Entries } from './entries.ts'

let seq = 0

function event(type: string, data: Record<string, unknown> = {}): SessionEvent {
  return { seq: ++seq, type, workerId: 'w', role: 'agent', timestamp: '2026-03-01T09:30:00.000Z', data }
}

function after(...events: SessionEvent[]): Entries {
  return events.reduce(fold, [] as Entries)
}

function texts(chat: Entries): string[] {
  return chat.map((entry) => (entry.kind === 'text' ? entry.text : entry.kind))
}

test('partial texts are joined, and the last one may be empty', () => {
  const chat = after(
    event('agent_message', { text: 'a', partial: true }),
    event('agent_message', { text: 'b', partial: true }),
    event('agent_message', { text: '', partial: false }),
    event('agent_message', { text: 'c', partial: false }),
  )
  expect(texts(chat)).toEqual(['ab', 'c'])
})

test('thoughts and messages with different ids are not joined', () => {
  const chat = after(
    event('agent_thought', { text: 'hm', partial: true }),
    event('agent_message', { text: 'a', partial: true, messageId: '1' }),
    event('agent_message', { text: 'b', partial: true, messageId: '2' }),
  )
  expect(texts(chat)).toEqual(['hm', 'a', 'b'])
})

test('text after a tool call is a new entry', () => {
  const chat = after(
    event('agent_message', { text: 'a', partial: true }),
    event('tool_call', { toolCallId: 't', title: 'edit' }),
    event('agent_message', { text: 'b', partial: true }),
  )
  expect(texts(chat)).toEqual(['a', 'tool', 'b'])
})

test('an update of a tool call replaces only the fields that it contains', () => {
  const chat = after(
    event('tool_call', { toolCallId: 't', title: 'edit', status: 'pending', content: [1] }),
    event('tool_call_update', { toolCallId: 't', title: null, status: 'completed' }),
  )
  expect(chat).toMatchObject([{ call: { title: 'edit', status: 'completed', content: [1] } }])
})

test('an update of an unknown call is shown, and the same id in the next turn is another call', () => {
  const chat = after(
    event('tool_call_update', { toolCallId: 't', status: 'completed' }),
    event('user_prompt', { text: 'more', promptId: 'p' }),
    event('tool_call', { toolCallId: 't', status: 'pending' }),
  )
  expect(chat.map((entry) => entry.kind)).toEqual(['tool', 'prompt', 'tool'])
})

test('a permission and its answer are one entry', () => {
  const asked = { id: 'q', toolCall: { toolCallId: 't' }, options: [{ optionId: 'y', name: 'Yes', kind: 'allow_once' }] }
  const chat = after(
    event('permission', { ...asked, status: 'pending' }),
    event('agent_message', { text: 'a', partial: false }),
    event('permission', { ...asked, status: 'selected', optionId: 'y', by: 'owner' }),
  )
  expect(chat).toMatchObject([{ kind: 'permission', status: 'selected', optionId: 'y' }, { kind: 'text' }])
})

test('a failed agent has a note with the error', () => {
  expect(after(event('worker_failed', { error: 'it fell over' }))).toMatchObject([{ kind: 'note', text: 'it fell over', bad: true }])
})

test('an agent that fails in a turn has one note with the error, wherever the log is cut', () => {
  const [end, failed] = [event('turn_end', { stopReason: 'error', error: 'it fell over' }), event('worker_failed', { error: 'it fell over' })]
  expect(after(end, failed)).toHaveLength(1)
  expect(join(after(end), after(failed))).toEqual(after(end, failed))
  expect(after(end, event('worker_failed', { error: 'something else' }))).toHaveLength(2)
})

test('two consecutive ends of an agent have one note', () => {
  const ends = [event('worker_exited', {}), event('worker_terminated', {})]
  expect(after(...ends)).toMatchObject([{ kind: 'note', text: 'The agent has stopped.' }])
})

test('a turn with another stop reason has a note', () => {
  expect(after(event('turn_end', { stopReason: 'max_tokens' }))).toMatchObject([{ text: 'The agent stopped: it reached its token limit.' }])
  expect(after(event('turn_end', { stopReason: 'error', error: 'no credit' }))).toMatchObject([{ text: 'no credit', bad: true }])
})

test('a plan replaces the earlier plan of the same turn', () => {
  const chat = after(
    event('plan', { entries: [{ content: 'one', status: 'pending' }] }),
    event('plan', { entries: [{ content: 'one', status: 'completed' }, { content: 'two', status: 'pending' }] }),
  )
  expect(chat).toMatchObject([{ steps: [{ status: 'completed' }, { text: 'two' }] }])
})

test('invalid data of an agent is accepted', () => {
  const chat = after(
    event('tool_call', {}),
    event('plan', { entries: 'none' }),
    event('plan', { entries: [null, 7] }),
    event('permission', { id: 1, options: {}, status: 'pending' }),
    event('agent_content', { content: null }),
    event('agent_message', { text: 5, partial: true }),
    event('something_new', { x: 1 }),
  )
  expect(chat.length).toBe(5)
})

test('terminal output in updates is collected in the entry of the call', () => {
  const update = (data: string) => event('tool_call_update', { toolCallId: 't', _meta: { terminal_output_delta: { terminal_id: 'x', data } } })
  expect(after(event('tool_call', { toolCallId: 't' }), update('one\n'), update('two\n'))).toMatchObject([{ kind: 'tool', output: 'one\ntwo\n' }])
})

/** Return pseudo-random numbers, the same for the same start. */
function* dice(start: number): Generator<number> {
  for (let state = start; ; ) yield (state = (state * 48_271) % 2_147_483_647)
}

/** Return random events, also in orders that a real agent never produces. */
function randomEvents(start: number): SessionEvent[] {
  const roll = dice(start)
  const next = (most: number) => (roll.next().value as number) % most
  const permission = () => ({ id: `p${next(2)}`, toolCall: { toolCallId: `t${next(3)}` }, options: [], status: next(2) ? 'pending' : 'selected' })
  const kinds: (() => SessionEvent)[] = [
    () => event('agent_message', { text: next(4) ? `m${next(9)}` : '', partial: next(3) > 0 }),
    () => event('agent_message', { text: `x${next(9)}`, partial: true, messageId: 'id' }),
    () => event('agent_thought', { text: `h${next(9)}`, partial: next(3) > 0 }),
    () => event('tool_call', { toolCallId: `t${next(3)}`, title: `title${next(9)}`, status: 'pending' }),
    () => event('tool_call_update', { toolCallId: `t${next(3)}`, status: next(2) ? 'completed' : null }),
    () => event('plan', { entries: [{ content: `${next(9)}`, status: 'pending' }] }),
    () => event('permission', permission()),
    () => event('user_prompt', { text: 'go', promptId: `${next(99)}`, imageIds: [] }),
    () => event('turn_end', { stopReason: next(2) ? 'end_turn' : 'cancelled' }),
    () => event('usage', { used: 1 }),
  ]
  return [event('user_prompt', { text: 'first', promptId: 'p', imageIds: [] }), ...Array.from({ length: 40 }, () => kinds[next(kinds.length)]!())]
}

test.each(Array.from({ length: 60 }, (_, n) => n + 1))('random log %i gives the same entries wherever it is cut', (start) => {
  const events = randomEvents(start)
  const whole = after(...events)
  for (let cut = 1; cut < events.length; cut++)
    expect(join(after(...events.slice(0, cut)), after(...events.slice(cut))), `cut at ${cut}`).toEqual(whole)
})
