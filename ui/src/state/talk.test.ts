import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { cutAnswer } from '../testing/answers.ts'
import { interceptSockets, type TestSocket } from '../testing/sockets.ts'
import { fakeStorage, fillStorage } from '../testing/storage.ts'
import { Talk } from './talk.svelte.ts'

interface Request {
  path: string
  body: Record<string, unknown>
}

let sockets: TestSocket[]
let requests: Request[]
let answer: () => Promise<Response>
let queue = async () => new Response('{"messages":[],"count":0,"paused":false}')
let past: { seq: number; type: string }[]
let log: (query: URLSearchParams) => Promise<Response>
let talk: Talk

beforeEach(() => {
  vi.useFakeTimers()
  sockets = interceptSockets()
  fakeStorage({ 'bullpen.secret': 'the-secret' })
  requests = []
  answer = async () => new Response('{}')
  past = []
  log = events
  vi.stubGlobal('fetch', (path: string, { body }: { body?: string }) => {
    requests.push({ path, body: body ? JSON.parse(body) : {} })
    if (path.includes('/events?')) return log(new URL(path, 'http://x').searchParams)
    return path.endsWith('/queue') ? queue() : answer()
  })
  talk = new Talk({ id: 's1', lastSeq: 2 }, { id: 'w1' })
  talk.open()
})

afterEach(() => {
  talk.close()
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

/** Answer a request for events from `past`, as the server does. */
async function events(query: URLSearchParams): Promise<Response> {
  const [after, before] = [Number(query.get('after') ?? 0), Number(query.get('before') ?? Infinity)]
  const types = query.get('types')?.split(',')
  const found = past.filter(({ seq, type }) => seq > after && seq < before && (!types || types.includes(type)))
  return new Response(JSON.stringify({ events: found, head: past.length }))
}

/** Run the pending frames and answers. */
const settle = () => vi.advanceTimersByTimeAsync(300)

/** Accept the newest socket and wait for the requests that come before its use. */
async function accepted(): Promise<TestSocket> {
  const socket = sockets.at(-1) as TestSocket
  socket.accept()
  await vi.advanceTimersByTimeAsync(0)
  return socket
}

const prompts = () => requests.filter(({ path }) => path.endsWith('/prompt')).map(({ body }) => body)

function event(seq: number, type: string, data: object = {}, workerId: string | null = 'w1'): { seq: number; type: string } {
  const all = { seq, type, workerId, role: null, timestamp: '2026-03-01T09:30:00.000Z', data }
  return all
}

function said(seq: number, text: string, workerId = 'w1'): { seq: number; type: string } {
  return event(seq, 'agent_message', { text, partial: true }, workerId)
}

function shown(): string {
  return talk.window.entries.map((entry) => ('text' in entry ? entry.text : entry.kind)).join('|')
}

test('the whole log is requested and each event is applied once', async () => {
  const socket = await accepted()
  expect(socket.heard('subscribe')).toEqual([{ type: 'subscribe', after: 0 }])
  socket.tell({ type: 'events', events: [said(1, 'a'), said(2, 'b')] })
  socket.tell({ type: 'events', events: [said(2, 'b'), said(3, 'c')] })
  await settle()
  expect([shown(), talk.caughtUp]).toEqual(['abc', true])
})

test('the newest events are loaded first and the connection continues after them', async () => {
  past = [said(7, 'a'), said(8, 'b')]
  talk.open()
  await settle()
  expect([shown(), talk.window.from, talk.caughtUp]).toEqual(['ab', 7, true])
  const socket = await accepted()
  expect(socket.heard('subscribe')).toEqual([{ type: 'subscribe', after: 8 }])
  socket.tell({ type: 'events', events: [said(9, 'c')] })
  await settle()
  expect(shown()).toBe('abc')
})

/** Open a pane whose first request is cut off, and return its socket. */
async function openedInACut(): Promise<TestSocket> {
  talk.close()
  log = async (query) => (query.has('types') ? events(query) : cutAnswer())
  talk = new Talk({ id: 's1', lastSeq: 2 }, { id: 'w1' })
  talk.open()
  const socket = await accepted()
  await vi.advanceTimersByTimeAsync(2000)
  return socket
}

/** Lose a connection and return the next one. */
async function reconnected(socket: TestSocket): Promise<TestSocket> {
  socket.die()
  await vi.advanceTimersByTimeAsync(1000)
  return accepted()
}

test('after a failed first request the stream delivers the events over several connections', async () => {
  let socket = await openedInACut()
  expect(socket.heard('subscribe')).toEqual([{ type: 'subscribe', after: 0 }])
  socket.tell({ type: 'events', events: [said(1, 'a'), said(2, 'b')] })
  socket = await reconnected(socket)
  expect(socket.heard('subscribe')).toEqual([{ type: 'subscribe', after: 2 }])
  socket.tell({ type: 'events', events: [said(3, 'c')] })
  await settle()
  expect(shown()).toBe('abc')
})

test('after a failed first request without stream events the next connection loads the newest events', async () => {
  let socket = await openedInACut()
  past = [event(7, 'turn_start', { promptId: 'p' }), said(8, 'b')]
  log = events
  socket = await reconnected(socket)
  expect(socket.heard('subscribe')).toEqual([{ type: 'subscribe', after: 8 }])
  await settle()
  expect([shown(), talk.caughtUp, talk.conversation.turn]).toMatchObject(['b', true, { promptId: 'p' }])
})

test('an invalid answer to the first request does not prevent the subscription', async () => {
  const warned = vi.spyOn(console, 'warn').mockReturnValue()
  talk.close()
  log = async () => new Response('{}')
  talk = new Talk({ id: 's1', lastSeq: 2 }, { id: 'w1' })
  talk.open()
  log = events
  expect((await accepted()).heard('subscribe')).toEqual([{ type: 'subscribe', after: 0 }])
  expect(warned).toHaveBeenCalled()
})

test('no settings are requested if the whole log was loaded', async () => {
  past = [event(1, 'agent_session', { acpSessionId: 'a', how: 'new', modes: { currentModeId: 'code' } }), event(2, 'turn_start', { promptId: 'p' })]
  talk.open()
  await accepted()
  expect(talk.conversation).toMatchObject({ turn: { promptId: 'p' }, settings: { modes: { currentModeId: 'code' } } })
  expect(requests.filter(({ path }) => path.includes('types='))).toEqual([])
})

test('a gap in the events causes a new subscription after the last event', async () => {
  const socket = await accepted()
  socket.tell({ type: 'events', events: [said(1, 'a'), said(3, 'c')] })
  await vi.advanceTimersByTimeAsync(31_000)
  expect((await accepted()).heard('subscribe')).toEqual([{ type: 'subscribe', after: 1 }])
})

test('events of other agents are ignored, events of the session are shown', async () => {
  const socket = await accepted()
  socket.tell({
    type: 'events',
    events: [said(1, 'mine'), said(2, 'theirs', 'w2'), event(3, 'error', { message: 'full' }, null)],
  })
  await settle()
  expect(shown()).toBe('mine|full')
})

test('older settings and turns are loaded and newer events are added', async () => {
  past = [event(1, 'agent_session', { acpSessionId: 'a', how: 'new', modes: { currentModeId: 'code' } }), event(2, 'turn_start', { promptId: 'p' })]
  const socket = await accepted()
  socket.tell({ type: 'events', events: [...past, event(3, 'mode_changed', { modeId: 'ask' })] })
  await settle()
  expect(talk.conversation).toMatchObject({ turn: { promptId: 'p' }, settings: { modes: { currentModeId: 'ask' } } })
  socket.tell({ type: 'events', events: [event(4, 'turn_end', { stopReason: 'end_turn' })] })
  await settle()
  expect(talk.conversation.turn).toBeNull()
})

test('a page that is too far behind starts at the end and loads the earlier events', async () => {
  past = Array.from({ length: 5 }, (_, n) => event(n + 1, 'user_prompt', { text: `${n + 1}`, promptId: `${n + 1}` }))
  const socket = await accepted()
  socket.tell({ type: 'snapshot', seq: 5, session: {} })
  await settle()
  expect([shown(), talk.window.from]).toEqual(['1|2|3|4|5', 1])
})

test('a prompt is unsent until the stream contains it', async () => {
  const socket = await accepted()
  answer = async () => new Response('{"seq":7,"queued":false}')
  await talk.prompts.say('hello', ['i1'])
  const [{ promptId }] = prompts() as [{ promptId: string }]
  expect(talk.prompts.unsent).toMatchObject([{ promptId, text: 'hello', imageIds: ['i1'] }])
  socket.tell({ type: 'events', events: [event(1, 'user_prompt', { text: 'hello', promptId })] })
  await settle()
  expect([talk.prompts.unsent, shown()]).toEqual([[], 'hello'])
})

test('a queued prompt counts as sent', async () => {
  const socket = await accepted()
  answer = async () => new Response('{"seq":7,"queued":true}')
  await talk.prompts.say('hello')
  const [{ promptId }] = prompts() as [{ promptId: string }]
  socket.tell({ type: 'events', events: [event(1, 'queue_added', { id: promptId, message: 'hello' }, null)] })
  await settle()
  expect(talk.prompts.unsent).toEqual([])
})

test('unconfirmed prompts are sent again after a reload, in order and with the same ids', async () => {
  await accepted()
  answer = async () => {
    throw new TypeError('network')
  }
  const saying = Promise.all([talk.prompts.say('one'), talk.prompts.say('two')])
  await vi.advanceTimersByTimeAsync(9000)
  await saying
  talk.close()
  const before = prompts().map(({ promptId }) => promptId)
  requests = []
  answer = async () => new Response('{"seq":7,"queued":false}')
  talk = new Talk({ id: 's1', lastSeq: 2 }, { id: 'w1' })
  expect(talk.prompts.unsent.map(({ text }) => text)).toEqual(['one', 'two'])
  talk.open()
  await accepted()
  await settle()
  expect(prompts().map(({ text }) => text)).toEqual(['one', 'two'])
  expect(before).toContain(prompts()[0]?.promptId)
})

/** Send a prompt and wait while requests fail and the socket stays open. */
async function saidInACut(milliseconds: number): Promise<void> {
  await accepted()
  answer = () => Promise.reject(new TypeError('the network is cut'))
  const saying = talk.prompts.say('hello')
  await vi.advanceTimersByTimeAsync(milliseconds)
  await saying
}

test('a prompt without an answer is sent again by itself, also if the socket stayed open', async () => {
  await saidInACut(2000)
  expect([talk.status, talk.prompts.obstacle]).toEqual(['open', 'The server does not answer.'])
  requests = []
  answer = async () => new Response('{"seq":3}')
  await vi.advanceTimersByTimeAsync(2000)
  expect(prompts()).toMatchObject([{ text: 'hello' }])
  expect(talk.prompts.obstacle).toBeUndefined()
})

test('a prompt sent while the database is unavailable is kept with the reason and sent again by itself', async () => {
  await accepted()
  answer = async () => Response.json({ error: 'unavailable', message: 'The database is away.' }, { status: 503 })
  const saying = talk.prompts.say('hello')
  await vi.advanceTimersByTimeAsync(2000)
  await saying
  expect([talk.prompts.obstacle, talk.prompts.unsent[0]?.problem]).toEqual(['The database is away.', undefined])
  requests = []
  answer = async () => new Response('{"seq":3}')
  await vi.advanceTimersByTimeAsync(2000)
  expect(prompts()).toMatchObject([{ text: 'hello' }])
  expect(talk.prompts.obstacle).toBeUndefined()
})

test('a prompt without an answer is sent immediately when the network is back, but not from a closed pane', async () => {
  await saidInACut(1200)
  requests = []
  talk.nudge()
  await vi.advanceTimersByTimeAsync(0)
  expect(prompts()).toMatchObject([{ text: 'hello' }])
  talk.close()
  await vi.advanceTimersByTimeAsync(1200)
  requests = []
  await vi.advanceTimersByTimeAsync(60_000)
  expect(prompts()).toEqual([])
})

test('a prompt whose answer is cut off is sent again before later prompts', async () => {
  await accepted()
  answer = async () => cutAnswer()
  const saying = talk.prompts.say('one')
  await vi.advanceTimersByTimeAsync(1200)
  await saying
  expect(talk.prompts.obstacle).toBe('The server does not answer.')
  requests = []
  answer = async () => new Response('{"seq":3}')
  await talk.prompts.say('two')
  expect(prompts()).toMatchObject([{ text: 'one' }, { text: 'two' }])
})

test('an invalid answer does not block later prompts', async () => {
  await accepted()
  answer = async () => new Response('null')
  await expect(talk.prompts.say('one')).rejects.toThrow(TypeError)
  requests = []
  answer = async () => new Response('{"seq":3}')
  await talk.prompts.say('two')
  expect(prompts()).toMatchObject([{ text: 'one' }, { text: 'two' }])
})

test('prompts can be sent, refused and retried while the storage is full', async () => {
  vi.spyOn(console, 'warn').mockReturnValue()
  await accepted()
  fillStorage()
  answer = async () => new Response('{"error":"queue_full","message":"the queue is full"}', { status: 409 })
  await talk.prompts.say('hello')
  expect(talk.prompts.unsent).toMatchObject([{ text: 'hello', problem: 'the queue is full' }])
  await talk.prompts.retry(talk.prompts.unsent[0]!.promptId)
  expect(prompts()).toMatchObject([{ text: 'hello' }, { text: 'hello' }])
})

test('a prompt whose event was already received counts as sent', async () => {
  const socket = await accepted()
  socket.tell({ type: 'events', events: [said(1, 'a'), said(2, 'b')] })
  answer = async () => new Response('{"seq":2,"queued":false}')
  await talk.prompts.say('long ago')
  expect(talk.prompts.unsent).toEqual([])
})

test('a refused prompt stays with its reason and can be retried or discarded', async () => {
  await accepted()
  answer = async () => new Response('{"error":"queue_full","message":"the queue is full"}', { status: 409 })
  await talk.prompts.say('hello')
  expect(talk.prompts.unsent).toMatchObject([{ text: 'hello', problem: 'the queue is full' }])
  const { promptId } = talk.prompts.unsent[0]!
  await talk.prompts.retry(promptId)
  expect(prompts().map((each) => each.promptId)).toEqual([promptId, promptId])
  talk.prompts.discard(promptId)
  expect(talk.prompts.unsent).toEqual([])
})

test('an event of the queue causes a reload of the queue', async () => {
  const socket = await accepted()
  await settle()
  queue = async () => new Response('{"messages":[],"count":2,"paused":true}')
  socket.tell({ type: 'events', events: [said(1, 'a'), said(2, 'b'), event(3, 'queue_paused', { why: 'cancelled' }, null)] })
  await settle()
  expect(talk.queue).toMatchObject({ count: 2, paused: true })
})

test('the message about a missing answer disappears after a reconnect, the message of a refusal stays', async () => {
  await accepted()
  answer = async () => Promise.reject(new TypeError('no route'))
  const stopped = talk.stop()
  await vi.advanceTimersByTimeAsync(2_000)
  expect([await stopped, talk.problem]).toEqual([false, 'The server does not answer.'])
  sockets.at(-1)?.die()
  await vi.advanceTimersByTimeAsync(10_000)
  await accepted()
  expect(talk.problem).toBeUndefined()

  answer = async () => new Response('{"error":"conflict","message":"nothing to stop"}', { status: 409 })
  await talk.stop()
  sockets.at(-1)?.die()
  await vi.advanceTimersByTimeAsync(10_000)
  await accepted()
  expect(talk.problem).toBe('nothing to stop')
})

test('a silent connection is replaced and the subscription continues after the last event', async () => {
  const socket = await accepted()
  socket.tell({ type: 'events', events: [said(1, 'a'), said(2, 'b')] })
  await vi.advanceTimersByTimeAsync(30_000)
  socket.tell({ type: 'heartbeat', head: 2 })
  await vi.advanceTimersByTimeAsync(39_000)
  expect(talk.status).toBe('open')
  await vi.advanceTimersByTimeAsync(1000)
  expect([talk.status, socket.closed]).toEqual(['waiting', true])
  await vi.advanceTimersByTimeAsync(1000)
  expect((await accepted()).heard('subscribe')).toEqual([{ type: 'subscribe', after: 2 }])
})
