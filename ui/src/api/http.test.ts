import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { cutAnswer } from '../testing/responses.ts'
import { ApiError, prefetch, call, download } from './http.ts'

let answers: (Response | Error)[]
let requests: { path: string; init: RequestInit }[]

beforeEach(() => {
  vi.useFakeTimers()
  vi.setTimerTickMode('nextTimerAsync')
  answers = []
  requests = []
  vi.stubGlobal('localStorage', { getItem: () => 'the-secret' })
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    requests.push({ path, init })
    const answer = answers.shift()
    if (answer instanceof Response) return answer
    throw answer ?? new TypeError('network')
  })
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const header = (request: number, name: string) => new Headers(requests[request]?.init.headers).get(name)

test('a call carries the secret of this origin', async () => {
  answers = [Response.json({ sessions: [] })]
  expect(await call('GET', '/sessions')).toEqual({ sessions: [] })
  expect(requests[0]?.path).toBe('/api/sessions')
  expect(header(0, 'X-Bullpen-Secret')).toBe('the-secret')
})

test('a prefetched answer is used by the first call only', async () => {
  answers = [Response.json({ sessions: [1] }), Response.json({ sessions: [2] })]
  prefetch('/sessions')
  expect(requests.length).toBe(1)
  expect(await call('GET', '/sessions')).toEqual({ sessions: [1] })
  expect(await call('GET', '/sessions')).toEqual({ sessions: [2] })
})

test('an error of a prefetched answer reaches the first call', async () => {
  answers = [Response.json({ error: 'unauthorized', message: 'Log in first.' }, { status: 401 })]
  prefetch('/sessions')
  await expect(call('GET', '/sessions')).rejects.toThrow('Log in first.')
})

test('a POST without an answer is sent again with the same key', async () => {
  answers = [new TypeError('network'), Response.json({ id: 's1' }, { status: 201 })]
  expect(await call('POST', '/sessions', { type: 'quick' })).toEqual({ id: 's1' })
  expect(header(0, 'Idempotency-Key')).toMatch(/^[0-9a-f]{32}$/)
  expect(header(1, 'Idempotency-Key')).toBe(header(0, 'Idempotency-Key'))
  expect(requests[1]?.init.body).toBe('{"type":"quick"}')
})

test('each call has its own key', async () => {
  answers = [Response.json({}), Response.json({})]
  await call('POST', '/sessions', {})
  await call('POST', '/sessions', {})
  expect(header(1, 'Idempotency-Key')).not.toBe(header(0, 'Idempotency-Key'))
})

test('a server that never answers is reported as not answering', async () => {
  await expect(call('GET', '/sessions')).rejects.toThrow('The server does not answer.')
  expect(requests.length).toBe(3)
})

test('a refused request has the message of the server and is not repeated', async () => {
  answers = [Response.json({ error: 'forbidden', message: 'That directory is outside the root.' }, { status: 403 })]
  const refusal = await call('POST', '/sessions', {}).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(ApiError)
  expect(refusal).toMatchObject({ status: 403, code: 'forbidden', message: 'That directory is outside the root.' })
  expect(requests.length).toBe(1)
})

test('an error without JSON is reported with its status', async () => {
  answers = [new Response('<h1>Bad gateway</h1>', { status: 502 })]
  await expect(call('GET', '/sessions')).rejects.toThrow('The server answered 502.')
})

test('a request is repeated when its answer is cut off', async () => {
  answers = [cutAnswer(), Response.json({ id: 's1' }, { status: 201 })]
  expect(await call('POST', '/sessions', { type: 'quick' })).toEqual({ id: 's1' })
  expect(header(1, 'Idempotency-Key')).toBe(header(0, 'Idempotency-Key'))
})

test('a request is repeated when its answer is incomplete JSON', async () => {
  answers = [new Response('{"sessions":[{"id'), Response.json({ sessions: [] })]
  expect(await call('GET', '/sessions')).toEqual({ sessions: [] })
})

test('a server whose answers are always cut off is reported as not answering', async () => {
  for (const request of [() => call('GET', '/sessions'), () => download('/sessions/s/files/x')]) {
    answers = [cutAnswer(), cutAnswer(), cutAnswer()]
    const refusal = await request().catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(ApiError)
    expect(refusal).toMatchObject({ status: 0, message: 'The server does not answer.' })
  }
})

test('an answer without a body is complete', async () => {
  answers = [new Response(null, { status: 204 })]
  expect(await call('DELETE', '/sessions/s')).toBeUndefined()
  expect(requests.length).toBe(1)
})

const away = () => Response.json({ error: 'unavailable', message: 'The database is away.' }, { status: 503, headers: { 'Retry-After': '5' } })

test('a POST that fails because the database is unavailable is sent again with the same key', async () => {
  answers = [away(), Response.json({ id: 's1' }, { status: 201 })]
  expect(await call('POST', '/sessions', { type: 'quick' })).toEqual({ id: 's1' })
  expect(header(1, 'Idempotency-Key')).toBe(header(0, 'Idempotency-Key'))
})

test('an unavailable database is reported with the message of the server', async () => {
  answers = [away(), away(), away()]
  await expect(call('GET', '/sessions')).rejects.toMatchObject({ status: 503, isTransient: true, message: 'The database is away.' })
})
