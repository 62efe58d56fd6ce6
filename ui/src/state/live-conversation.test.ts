import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { cutAnswer } from '../testing/responses.ts'
import { interceptSockets, type TestSocket } from '../testing/sockets.ts'
import { fakeStorage, fillStorage } from '../testing/storage.ts'
import { LiveConversation } from './live-conversation.svelte.ts'

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
let chat: LiveConversation

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
  chat = new LiveConversation({ id: 's1', lastSeq: 2 }, { id: 'w1' })
  chat.open()
})

afterEach(() => {
  chat.close()
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
const runPending = () => vi.advanceTimersByTimeAsync(300)

/** Accept the newest socket and wait for the requests that come before its use. */
async function acceptNewest(): Promise<TestSocket> {
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

function agentText(seq: number, text: string, workerId = 'w1'): { seq: number; type: string } {
  return event(seq, 'agent_message', { text, partial: true }, workerId)
}

function shownText(): string {
  return chat.window.entries.map((entry) => ('text' in entry ? entry.text : entry.kind)).join('|')
}

test('the whole log is requested and each event is applied once', async () => {
  const socket = await acceptNewest()
  expect(socket.sentOfType('subscribe')).toEqual([{ type: 'subscribe', after: 0 }])
  socket.deliver({ type: 'events', events: [agentText(1, 'a'), agentText(2, 'b')] })
  socket.deliver({ type: 'events', events: [agentText(2, 'b'), agentText(3, 'c')] })
  await runPending()
  expect([shownText(), chat.caughtUp]).toEqual(['abc', true])
})

test('the newest events are loaded first and the connection continues after them', async () => {
  past = [agentText(7, 'a'), agentText(8, 'b')]
  chat.open()
  await runPending()
  expect([shownText(), chat.window.from, chat.caughtUp]).toEqual(['ab', 7, true])
  const socket = await acceptNewest()
  expect(socket.sentOfType('subscribe')).toEqual([{ type: 'subscribe', after: 8 }])
  socket.deliver({ type: 'events', events: [agentText(9, 'c')] })
  await runPending()
  expect(shownText()).toBe('abc')
})

/** Open a pane whose first request is cut off, and return its socket. */
async function openWithFailingRequest(): Promise<TestSocket> {
  chat.close()
  log = async (query) => (query.has('types') ? events(query) : cutAnswer())
  chat = new LiveConversation({ id: 's1', lastSeq: 2 }, { id: 'w1' })
  chat.open()
  const socket = await acceptNewest()
  await vi.advanceTimersByTimeAsync(2000)
  return socket
}

/** Lose a connection and return the next one. */
async function reconnect(socket: TestSocket): Promise<TestSocket> {
  socket.disconnect()
  await vi.advanceTimersByTimeAsync(1000)
  return acceptNewest()
}

test('after a failed first request the stream delivers the events over several connections', async () => {
  let socket = await openWithFailingRequest()
  expect(socket.sentOfType('subscribe')).toEqual([{ type: 'subscribe', after: 0 }])
  socket.deliver({ type: 'events', events: [agentText(1, 'a'), agentText(2, 'b')] })
  socket = await reconnect(socket)
  expect(socket.sentOfType('subscribe')).toEqual([{ type: 'subscribe', after: 2 }])
  socket.deliver({ type: 'events', events: [agentText(3, 'c')] })
  await runPending()
  expect(shownText()).toBe('abc')
})

test('after a failed first request without stream events the next connection loads the newest events', async () => {
  let socket = await openWithFailingRequest()
  past = [event(7, 'turn_start', { promptId: 'p' }), agentText(8, 'b')]
  log = events
  socket = await reconnect(socket)
  expect(socket.sentOfType('subscribe')).toEqual([{ type: 'subscribe', after: 8 }])
  await runPending()
  expect([shownText(), chat.caughtUp, chat.conversation.turn]).toMatchObject(['b', true, { promptId: 'p' }])
})

test('an invalid answer to the first request does not prevent the subscription', async () => {
  const warned = vi.spyOn(console, 'warn').mockReturnValue()
  chat.close()
  log = async () => new Response('{}')
  chat = new LiveConversation({ id: 's1', lastSeq: 2 }, { id: 'w1' })
  chat.open()
  log = events
  expect((await acceptNewest()).sentOfType('subscribe')).toEqual([{ type: 'subscribe', after: 0 }])
  expect(warned).toHaveBeenCalled()
})

test('no settings are requested if the whole log was loaded', async () => {
  past = [event(1, 'agent_session', { acpSessionId: 'a', how: 'new', modes: { currentModeId: 'code' } }), event(2, 'turn_start', { promptId: 'p' })]
  chat.open()
  await acceptNewest()
  expect(chat.conversation).toMatchObject({ turn: { promptId: 'p' }, settings: { modes: { currentModeId: 'code' } } })
  expect(requests.filter(({ path }) => path.includes('types='))).toEqual([])
})

test('a gap in the events causes a new subscription after the last event', async () => {
  const socket = await acceptNewest()
  socket.deliver({ type: 'events', events: [agentText(1, 'a'), agentText(3, 'c')] })
  await vi.advanceTimersByTimeAsync(31_000)
  expect((await acceptNewest()).sentOfType('subscribe')).toEqual([{ type: 'subscribe', after: 1 }])
})

test('events of other agents are ignored, events of the session are shown', async () => {
  const socket = await acceptNewest()
  socket.deliver({
    type: 'events',
    events: [agentText(1, 'mine'), agentText(2, 'theirs', 'w2'), event(3, 'error', { message: 'full' }, null)],
  })
  await runPending()
  expect(shownText()).toBe('mine|full')
})

test('older settings and turns are loaded and newer events are added', async () => {
  past = [event(1, 'agent_session', { acpSessionId: 'a', how: 'new', modes: { currentModeId: 'code' } }), event(2, 'turn_start', { promptId: 'p' })]
  const socket = await acceptNewest()
  socket.deliver({ type: 'events', events: [...past, event(3, 'mode_changed', { modeId: 'ask' })] })
  await runPending()
  expect(chat.conversation).toMatchObject({ turn: { promptId: 'p' }, settings: { modes: { currentModeId: 'ask' } } })
  socket.deliver({ type: 'events', events: [event(4, 'turn_end', { stopReason: 'end_turn' })] })
  await runPending()
  expect(chat.conversation.turn).toBeNull()
})

test('a page that is too far behind starts at the end and loads the earlier events', async () => {
  past = Array.from({ length: 5 }, (_, n) => event(n + 1, 'user_prompt', { text: `${n + 1}`, promptId: `${n + 1}` }))
  const socket = await acceptNewest()
  socket.deliver({ type: 'snapshot', seq: 5, session: {} })
  await runPending()
  expect([shownText(), chat.window.from]).toEqual(['1|2|3|4|5', 1])
})

test('a prompt is unsent until the stream contains it', async () => {
  const socket = await acceptNewest()
  answer = async () => new Response('{"seq":7,"queued":false}')
  await chat.prompts.submit('hello', ['i1'])
  const [{ promptId }] = prompts() as [{ promptId: string }]
  expect(chat.prompts.unsent).toMatchObject([{ promptId, text: 'hello', imageIds: ['i1'] }])
  socket.deliver({ type: 'events', events: [event(1, 'user_prompt', { text: 'hello', promptId })] })
  await runPending()
  expect([chat.prompts.unsent, shownText()]).toEqual([[], 'hello'])
})

test('a queued prompt counts as sent', async () => {
  const socket = await acceptNewest()
  answer = async () => new Response('{"seq":7,"queued":true}')
  await chat.prompts.submit('hello')
  const [{ promptId }] = prompts() as [{ promptId: string }]
  socket.deliver({ type: 'events', events: [event(1, 'queue_added', { id: promptId, message: 'hello' }, null)] })
  await runPending()
  expect(chat.prompts.unsent).toEqual([])
})

test('unconfirmed prompts are sent again after a reload, in order and with the same ids', async () => {
  await acceptNewest()
  answer = async () => {
    throw new TypeError('network')
  }
  const submitting = Promise.all([chat.prompts.submit('one'), chat.prompts.submit('two')])
  await vi.advanceTimersByTimeAsync(9000)
  await submitting
  chat.close()
  const before = prompts().map(({ promptId }) => promptId)
  requests = []
  answer = async () => new Response('{"seq":7,"queued":false}')
  chat = new LiveConversation({ id: 's1', lastSeq: 2 }, { id: 'w1' })
  expect(chat.prompts.unsent.map(({ text }) => text)).toEqual(['one', 'two'])
  chat.open()
  await acceptNewest()
  await runPending()
  expect(prompts().map(({ text }) => text)).toEqual(['one', 'two'])
  expect(before).toContain(prompts()[0]?.promptId)
})

/** Send a prompt and wait while requests fail and the socket stays open. */
async function submitWhileOffline(milliseconds: number): Promise<void> {
  await acceptNewest()
  answer = () => Promise.reject(new TypeError('the network is cut'))
  const submitting = chat.prompts.submit('hello')
  await vi.advanceTimersByTimeAsync(milliseconds)
  await submitting
}

test('a prompt without an answer is sent again by itself, also if the socket stayed open', async () => {
  await submitWhileOffline(2000)
  expect([chat.status, chat.prompts.obstacle]).toEqual(['open', 'The server does not answer.'])
  requests = []
  answer = async () => new Response('{"seq":3}')
  await vi.advanceTimersByTimeAsync(2000)
  expect(prompts()).toMatchObject([{ text: 'hello' }])
  expect(chat.prompts.obstacle).toBeUndefined()
})

test('a prompt sent while the database is unavailable is kept with the reason and sent again by itself', async () => {
  await acceptNewest()
  answer = async () => Response.json({ error: 'unavailable', message: 'The database is away.' }, { status: 503 })
  const submitting = chat.prompts.submit('hello')
  await vi.advanceTimersByTimeAsync(2000)
  await submitting
  expect([chat.prompts.obstacle, chat.prompts.unsent[0]?.problem]).toEqual(['The database is away.', undefined])
  requests = []
  answer = async () => new Response('{"seq":3}')
  await vi.advanceTimersByTimeAsync(2000)
  expect(prompts()).toMatchObject([{ text: 'hello' }])
  expect(chat.prompts.obstacle).toBeUndefined()
})

test('a prompt without an answer is sent immediately when the network is back, but not from a closed pane', async () => {
  await submitWhileOffline(1200)
  requests = []
  chat.retryNow()
  await vi.advanceTimersByTimeAsync(0)
  expect(prompts()).toMatchObject([{ text: 'hello' }])
  chat.close()
  await vi.advanceTimersByTimeAsync(1200)
  requests = []
  await vi.advanceTimersByTimeAsync(60_000)
  expect(prompts()).toEqual([])
})

test('a prompt whose answer is cut off is sent again before later prompts', async () => {
  await acceptNewest()
  answer = async () => cutAnswer()
  const submitting = chat.prompts.submit('one')
  await vi.advanceTimersByTimeAsync(1200)
  await submitting
  expect(chat.prompts.obstacle).toBe('The server does not answer.')
  requests = []
  answer = async () => new Response('{"seq":3}')
  await chat.prompts.submit('two')
  expect(prompts()).toMatchObject([{ text: 'one' }, { text: 'two' }])
})

test('an invalid answer does not block later prompts', async () => {
  await acceptNewest()
  answer = async () => new Response('null')
  await expect(chat.prompts.submit('one')).rejects.toThrow(TypeError)
  requests = []
  answer = async () => new Response('{"seq":3}')
  await chat.prompts.submit('two')
  expect(prompts()).toMatchObject([{ text: 'one' }, { text: 'two' }])
})

test('prompts can be sent, refused and retried while the storage is full', async () => {
  vi.spyOn(console, 'warn').mockReturnValue()
  await acceptNewest()
  fillStorage()
  answer = async () => new Response('{"error":"queue_full","message":"the queue is full"}', { status: 409 })
  await chat.prompts.submit('hello')
  expect(chat.prompts.unsent).toMatchObject([{ text: 'hello', problem: 'the queue is full' }])
  await chat.prompts.retry(chat.prompts.unsent[0]!.promptId)
  expect(prompts()).toMatchObject([{ text: 'hello' }, { text: 'hello' }])
})

test('a prompt whose event was already received counts as sent', async () => {
  const socket = await acceptNewest()
  socket.deliver({ type: 'events', events: [agentText(1, 'a'), agentText(2, 'b')] })
  answer = async () => new Response('{"seq":2,"queued":false}')
  await chat.prompts.submit('long ago')
  expect(chat.prompts.unsent).toEqual([])
})

test('a refused prompt stays with its reason and can be retried or discarded', async () => {
  await acceptNewest()
  answer = async () => new Response('{"error":"queue_full","message":"the queue is full"}', { status: 409 })
  await chat.prompts.submit('hello')
  expect(chat.prompts.unsent).toMatchObject([{ text: 'hello', problem: 'the queue is full' }])
  const { promptId } = chat.prompts.unsent[0]!
  await chat.prompts.retry(promptId)
  expect(prompts().map((each) => each.promptId)).toEqual([promptId, promptId])
  chat.prompts.discard(promptId)
  expect(chat.prompts.unsent).toEqual([])
})

test('an event of the queue causes a reload of the queue', async () => {
  const socket = await acceptNewest()
  await runPending()
  queue = async () => new Response('{"messages":[],"count":2,"paused":true}')
  socket.deliver({ type: 'events', events: [agentText(1, 'a'), agentText(2, 'b'), event(3, 'queue_paused', { why: 'cancelled' }, null)] })
  await runPending()
  expect(chat.queue).toMatchObject({ count: 2, paused: true })
})

test('the message about a missing answer disappears after a reconnect, the message of a refusal stays', async () => {
  await acceptNewest()
  answer = async () => Promise.reject(new TypeError('no route'))
  const stopped = chat.stop()
  await vi.advanceTimersByTimeAsync(2_000)
  expect([await stopped, chat.problem]).toEqual([false, 'The server does not answer.'])
  sockets.at(-1)?.disconnect()
  await vi.advanceTimersByTimeAsync(10_000)
  await acceptNewest()
  expect(chat.problem).toBeUndefined()

  answer = async () => new Response('{"error":"conflict","message":"nothing to stop"}', { status: 409 })
  await chat.stop()
  sockets.at(-1)?.disconnect()
  await vi.advanceTimersByTimeAsync(10_000)
  await acceptNewest()
  expect(chat.problem).toBe('nothing to stop')
})

test('a silent connection is replaced and the subscription continues after the last event', async () => {
  const socket = await acceptNewest()
  socket.deliver({ type: 'events', events: [agentText(1, 'a'), agentText(2, 'b')] })
  await vi.advanceTimersByTimeAsync(30_000)
  socket.deliver({ type: 'heartbeat', head: 2 })
  await vi.advanceTimersByTimeAsync(39_000)
  expect(chat.status).toBe('open')
  await vi.advanceTimersByTimeAsync(1000)
  expect([chat.status, socket.closed]).toEqual(['waiting', true])
  await vi.advanceTimersByTimeAsync(1000)
  expect((await acceptNewest()).sentOfType('subscribe')).toEqual([{ type: 'subscribe', after: 2 }])
})
