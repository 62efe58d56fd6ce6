/** REST: one function that carries the secret, the idempotency key and the server's sentence when it refuses. */
import { randomId } from './random.ts'
import { pass } from './secret.ts'

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details?: unknown,
  ) {
    super(message)
  }

  /** Whether the same request may succeed later: nothing answered, or the server cannot reach its database. */
  get passes(): boolean {
    return this.status === 0 || this.status === UNAVAILABLE
  }
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

const TRIES = 3
const UNAVAILABLE = 503

/** What is said when nobody answers; whoever shows it takes it back when somebody does. */
export const UNANSWERED = 'The server does not answer.'

const ahead = new Map<string, Promise<unknown>>()

/** Asks before anybody needs it: the first `call` for the same gets this answer. */
export function askAhead(path: string): void {
  const answer = call('GET', path)
  answer.catch(() => {}) // whoever calls for it is told
  ahead.set(path, answer)
}

export async function call<T>(method: Method, path: string, body?: unknown): Promise<T> {
  const asked = method === 'GET' && ahead.get(path)
  if (asked && ahead.delete(path)) return asked as Promise<T>
  const headers = pass()
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  if (method === 'POST') headers['Idempotency-Key'] = randomId()
  const request: RequestInit = { method, headers, credentials: 'same-origin', cache: 'no-store' }
  if (body !== undefined) request.body = JSON.stringify(body)
  return reach(`/api${path}`, request, read<T>)
}

/** A file as it is; what it is its content says. */
export async function upload<T>(path: string, file: Blob): Promise<T> {
  const headers = { ...pass(), 'Idempotency-Key': randomId(), 'Content-Type': 'application/octet-stream' }
  return reach(`/api${path}`, { method: 'POST', headers, credentials: 'same-origin', body: file }, read<T>)
}

/** Bytes; an <img> cannot carry our secret. */
export async function download(path: string): Promise<Blob> {
  return reach(`/api${path}`, { headers: pass(), credentials: 'same-origin' }, (response) => (response.ok ? response.blob() : read<Blob>(response)))
}

/** A last word of a page that is going: it outlives the page, and nobody waits for the answer. */
export function leave(path: string): void {
  const headers = { ...pass(), 'Idempotency-Key': randomId() }
  void fetch(`/api${path}`, { method: 'POST', headers, credentials: 'same-origin', keepalive: true }).catch(() => {})
}

/**
 * Send the request again if no complete answer came back, or if the server was without its database. The key makes the
 * repeat of a POST harmless.
 */
async function reach<T>(path: string, request: RequestInit, take: (response: Response) => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await take(await fetch(path, request))
    } catch (error) {
      const problem = error instanceof ApiError ? error : new ApiError(0, 'unreachable', UNANSWERED)
      if (tried === TRIES || !problem.passes) throw problem
      await new Promise((resolve) => setTimeout(resolve, 400 * tried))
    }
  }
}

async function read<T>(response: Response): Promise<T> {
  const text = await response.text()
  if (response.ok) return (text ? JSON.parse(text) : undefined) as T // what is no JSON was cut off, and is asked for again
  const { error, message, details } = (parse(text) ?? {}) as { error?: string; message?: string; details?: unknown }
  throw new ApiError(response.status, error ?? 'internal', message ?? `The server answered ${response.status}.`, details)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
