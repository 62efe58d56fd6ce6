import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { POLL_MS, SessionPorts } from './ports.svelte.ts'

const PORT = { port: 3000, address: '127.0.0.1', workerId: 'w', role: 'terminal', pid: 1, command: 'node' }
let requests: string[]
let answer: () => Response

beforeEach(() => {
  vi.useFakeTimers()
  requests = []
  answer = () => Response.json({ ports: [PORT] })
  vi.stubGlobal('localStorage', { getItem: () => 'secret' })
  vi.stubGlobal('fetch', async (path: string) => {
    requests.push(path)
    return answer()
  })
  setVisibility('visible')
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

function setVisibility(visibilityState: DocumentVisibilityState): void {
  vi.stubGlobal('document', { visibilityState })
}

test('the ports are loaded immediately and then periodically until close', async () => {
  const ports = new SessionPorts('s')
  ports.refresh()
  await vi.advanceTimersByTimeAsync(0)
  expect([ports.list, ports.loaded, requests]).toEqual([[PORT], true, ['/api/sessions/s/ports']])
  await vi.advanceTimersByTimeAsync(POLL_MS)
  expect(requests).toHaveLength(2)
  ports.close()
  await vi.advanceTimersByTimeAsync(10 * POLL_MS)
  expect(requests).toHaveLength(2)
})

test('a hidden page loads nothing, and loads immediately when it is visible again', async () => {
  const ports = new SessionPorts('s')
  ports.refresh()
  await vi.advanceTimersByTimeAsync(0)
  setVisibility('hidden')
  await vi.advanceTimersByTimeAsync(10 * POLL_MS)
  expect(requests).toHaveLength(1)
  setVisibility('visible')
  ports.refresh()
  await vi.advanceTimersByTimeAsync(0)
  expect(requests).toHaveLength(2)
  await vi.advanceTimersByTimeAsync(POLL_MS)
  expect(requests).toHaveLength(3)
  ports.close()
})

test('the same answer keeps the list object, so that nothing is drawn again', async () => {
  const ports = new SessionPorts('s')
  ports.refresh()
  await vi.advanceTimersByTimeAsync(0)
  const before = ports.list
  await vi.advanceTimersByTimeAsync(POLL_MS)
  expect(ports.list).toBe(before)
  ports.close()
})

test('an error of the server is shown until the next answer', async () => {
  answer = () => Response.json({ error: 'not_found', message: 'no session s' }, { status: 404 })
  const ports = new SessionPorts('s')
  ports.refresh()
  await vi.advanceTimersByTimeAsync(0)
  expect(ports.problem).toBe('no session s')
  answer = () => Response.json({ ports: [] })
  await vi.advanceTimersByTimeAsync(POLL_MS)
  expect([ports.problem, ports.loaded]).toEqual([undefined, true])
  ports.close()
})
