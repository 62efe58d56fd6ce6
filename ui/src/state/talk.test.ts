import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { interceptSockets, type TestSocket } from '../testing/sockets.ts'
import { Talk } from './talk.svelte.ts'

interface Request {
  path: string
  body: Record<string, unknown>
}

let sockets: TestSocket[]
let requests: Request[]
let answer: () => Promise<Response>
let talk: Talk

beforeEach(() => {
  vi.useFakeTimers()
  sockets = interceptSockets()
  requests = []
  answer = async () => new Response('{"count":0,"paused":false}')
  vi.stubGlobal('fetch', (path: string, { body }: { body?: string }) => {
    requests.push({ path, body: body ? JSON.parse(body) : {} })
    return answer()
  })
  talk = new Talk({ id: 's1', lastSeq: 2 }, { id: 'w1' })
  talk.open()
})

afterEach(() => {
  talk.close()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const accepted = () => (sockets.at(-1) as TestSocket).accept()
const prompts = () => requests.filter(({ path }) => path.endsWith('/prompt')).map(({ body }) => body)

function event(seq: number, type: string, data: object = {}, workerId: string | null = 'w1'): object {
  return { seq, type, workerId, timestamp: '2026-03-01T09:30:00.000Z', data }
}

function said(seq: number, text: string, workerId = 'w1'): object {
  return event(seq, 'agent_message', { text, partial: true }, workerId)
}

function shown(): string {
  return talk.chat.entries.map((entry) => ('text' in entry ? entry.text : entry.kind)).join('|')
}

test('it asks for the past and applies each event once', () => {
  const socket = accepted()
  expect(socket.heard('subscribe')).toEqual([{ type: 'subscribe', after: 0 }])
  socket.tell({ type: 'events', events: [said(1, 'a'), said(2, 'b')] })
  socket.tell({ type: 'events', events: [said(2, 'b'), said(3, 'c')] })
  expect(shown()).toBe('abc')
})

test('a hole makes it ask again from where it stands', () => {
  accepted().tell({ type: 'events', events: [said(1, 'a'), said(3, 'c')] })
  expect(shown()).toBe('')
  vi.advanceTimersByTime(31_000)
  expect(accepted().heard('subscribe')).toEqual([{ type: 'subscribe', after: 1 }])
})

test('it shows one agent and what concerns the whole session', () => {
  accepted().tell({
    type: 'events',
    events: [said(1, 'mine'), said(2, 'theirs', 'w2'), event(3, 'error', { message: 'full' }, null)],
  })
  expect(shown()).toBe('mine|full')
})

test('a prompt is shown as not sent until the stream has it', async () => {
  const socket = accepted()
  await talk.say('hello')
  const [{ promptId }] = prompts() as [{ promptId: string }]
  expect(talk.unsent).toEqual([{ promptId, text: 'hello' }])
  socket.tell({ type: 'events', events: [event(1, 'user_prompt', { text: 'hello', promptId })] })
  expect([talk.unsent, shown()]).toEqual([[], 'hello'])
})

test('a prompt that waits in the queue counts as sent', async () => {
  const socket = accepted()
  await talk.say('hello')
  const [{ promptId }] = prompts() as [{ promptId: string }]
  socket.tell({ type: 'events', events: [event(1, 'queue_added', { id: promptId, message: 'hello' }, null)] })
  expect(talk.unsent).toEqual([])
})

test('a prompt nobody confirmed is sent again under its id with the next connection', async () => {
  const socket = accepted()
  answer = async () => {
    throw new TypeError('network')
  }
  const saying = talk.say('hello')
  await vi.advanceTimersByTimeAsync(5000)
  await saying
  expect(talk.unsent.length).toBe(1)
  answer = async () => new Response('{}')
  socket.die()
  await vi.advanceTimersByTimeAsync(31_000)
  accepted()
  await vi.advanceTimersByTimeAsync(0)
  const ids = new Set(prompts().map(({ promptId }) => promptId))
  expect([ids.size, prompts().length > 1]).toEqual([1, true])
})

test('a refused prompt is taken back and the reason shown', async () => {
  accepted()
  await vi.advanceTimersByTimeAsync(0)
  answer = async () => new Response('{"error":"conflict","message":"the session is cancelled"}', { status: 409 })
  await talk.say('hello')
  expect([talk.unsent, talk.problem]).toEqual([[], 'the session is cancelled'])
})

test('a change of the queue is looked up', async () => {
  const socket = accepted()
  await vi.advanceTimersByTimeAsync(0)
  answer = async () => new Response('{"messages":[],"count":2,"paused":true}')
  socket.tell({ type: 'events', events: [event(1, 'queue_paused', { why: 'cancelled' }, null)] })
  await vi.advanceTimersByTimeAsync(0)
  expect(talk.queue).toMatchObject({ count: 2, paused: true })
})
