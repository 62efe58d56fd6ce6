/** Send REST requests with credentials and an idempotency key, repeat them after lost answers, and turn errors into `ApiError`. */
import { randomId } from './random.ts'
import { credentialHeaders } from './credentials.ts'

/** A request that the server refused, or did not answer (status 0); `message` is the text of the server. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details?: unknown,
  ) {
    super(message)
  }

  /** Whether the same request may succeed later: there was no answer, or the server cannot reach its database. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === STATUS_UNAVAILABLE
  }
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

const MAX_TRIES = 3
const STATUS_UNAVAILABLE = 503

/** Message of an `ApiError` without an answer. A view that shows it removes it when the server answers again. */
export const NO_ANSWER = 'The server does not answer.'

const prefetched = new Map<string, Promise<unknown>>()

/** Send a GET request early; the first `call` of the same path gets its answer. */
export function prefetch(path: string): void {
  const answer = call('GET', path)
  answer.catch(() => {}) // the first `call` of the path gets the error
  prefetched.set(path, answer)
}

/** Send a request to `/api`, repeatedly if no answer comes, and return the parsed answer, or throw `ApiError`. A prefetched answer is used once. */
export async function call<T>(method: Method, path: string, body?: unknown): Promise<T> {
  const prefetchedAnswer = method === 'GET' && prefetched.get(path)
  if (prefetchedAnswer && prefetched.delete(path)) return prefetchedAnswer as Promise<T>
  const headers = credentialHeaders()
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  if (method === 'POST') headers['Idempotency-Key'] = randomId()
  const request: RequestInit = { method, headers, credentials: 'same-origin', cache: 'no-store' }
  if (body !== undefined) request.body = JSON.stringify(body)
  return fetchWithRetry(`/api${path}`, request, parseAnswer<T>)
}

/** Send a file as raw bytes; the server detects its type from the content. */
export async function upload<T>(path: string, file: Blob, method: 'POST' | 'PUT' = 'POST'): Promise<T> {
  const headers = { ...credentialHeaders(), 'Idempotency-Key': randomId(), 'Content-Type': 'application/octet-stream' }
  return fetchWithRetry(`/api${path}`, { method, headers, credentials: 'same-origin', body: file }, parseAnswer<T>)
}

/** Return the bytes of a path. Images need this too, because an <img> cannot send the secret. */
export async function download(path: string): Promise<Blob> {
  return fetchWithRetry(`/api${path}`, { headers: credentialHeaders(), credentials: 'same-origin' }, (response) => (response.ok ? response.blob() : parseAnswer<Blob>(response)))
}

/** Send a POST while the page is closing. The browser finishes it after the page is gone; the answer is ignored. */
export function postWhileClosing(path: string): void {
  const headers = { ...credentialHeaders(), 'Idempotency-Key': randomId() }
  void fetch(`/api${path}`, { method: 'POST', headers, credentials: 'same-origin', keepalive: true }).catch(() => {})
}

/**
 * Send a request, and send it again if no complete answer came back or the server cannot reach its database.
 * The idempotency key makes repeating a POST safe.
 */
async function fetchWithRetry<T>(path: string, request: RequestInit, readAnswer: (response: Response) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await readAnswer(await fetch(path, request))
    } catch (error) {
      const problem = error instanceof ApiError ? error : new ApiError(0, 'unreachable', NO_ANSWER)
      if (attempt === MAX_TRIES || !problem.isTransient) throw problem
      await new Promise((resolve) => setTimeout(resolve, 400 * attempt))
    }
  }
}

/** Return the JSON of a successful answer, or throw the error that it contains. */
async function parseAnswer<T>(response: Response): Promise<T> {
  const text = await response.text()
  if (response.ok) return (text ? JSON.parse(text) : undefined) as T // incomplete JSON was cut off; the SyntaxError makes the caller repeat the request
  const { error, message, details } = (parseJson(text) ?? {}) as { error?: string; message?: string; details?: unknown }
  throw new ApiError(response.status, error ?? 'internal', message ?? `The server answered ${response.status}.`, details)
}

/** Return parsed JSON, or undefined if the text is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
