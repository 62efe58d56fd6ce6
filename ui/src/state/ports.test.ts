import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { PAUSE, Ports } from './ports.svelte.ts'

const PORT = { port: 3000, address: '127.0.0.1', workerId: 'w', role: 'terminal', pid: 1, command: 'node' }
let asked: string[]
let answer: () => Response

beforeEach(() => {
  vi.useFakeTimers()
  asked = []
  answer = () => Response.json({ ports: [PORT] })
  vi.stubGlobal('localStorage', { getItem: () => 'secret' })
  vi.stubGlobal('fetch', async (path: string) => {
    asked.push(path)
    return answer()
  })
  seen('visible')
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

function seen(visibilityState: DocumentVisibilityState): void {
  vi.stubGlobal('document', { visibilityState })
}

test('the ports are loaded immediately and then periodically until close', async () => {
  const ports = new Ports('s')
  ports.look()
  await vi.advanceTimersByTimeAsync(0)
  expect([ports.list, ports.loaded, asked]).toEqual([[PORT], true, ['/api/sessions/s/ports']])
  await vi.advanceTimersByTimeAsync(PAUSE)
  expect(asked).toHaveLength(2)
  ports.close()
  await vi.advanceTimersByTimeAsync(10 * PAUSE)
  expect(asked).toHaveLength(2)
})

test('a hidden page loads nothing, and loads immediately when it is visible again', async () => {
  const ports = new Ports('s')
  ports.look()
  await vi.advanceTimersByTimeAsync(0)
  seen('hidden')
  await vi.advanceTimersByTimeAsync(10 * PAUSE)
  expect(asked).toHaveLength(1)
  seen('visible')
  ports.look()
  await vi.advanceTimersByTimeAsync(0)
  expect(asked).toHaveLength(2)
  await vi.advanceTimersByTimeAsync(PAUSE)
  expect(asked).toHaveLength(3)
  ports.close()
})

test('the same answer keeps the list object, so that nothing is drawn again', async () => {
  const ports = new Ports('s')
  ports.look()
  await vi.advanceTimersByTimeAsync(0)
  const before = ports.list
  await vi.advanceTimersByTimeAsync(PAUSE)
  expect(ports.list).toBe(before)
  ports.close()
})

test('an error of the server is shown until the next answer', async () => {
  answer = () => Response.json({ error: 'not_found', message: 'no session s' }, { status: 404 })
  const ports = new Ports('s')
  ports.look()
  await vi.advanceTimersByTimeAsync(0)
  expect(ports.problem).toBe('no session s')
  answer = () => Response.json({ ports: [] })
  await vi.advanceTimersByTimeAsync(PAUSE)
  expect([ports.problem, ports.loaded]).toEqual([undefined, true])
  ports.close()
})
