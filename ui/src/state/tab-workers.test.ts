import { expect, test } from 'vitest'
import { aSession, aWorker } from '../testing/test-records.ts'
import { canStartAgain, tabWorkers } from './tab-workers.ts'

const stopped = aWorker({ id: 'a', role: 'shell', state: 'terminated' })
const running = aWorker({ id: 'b', role: 'shell', state: 'active' })
const command = aWorker({ id: '00000000-0000-5000-8000-000000000000', role: 'ls', type: 'terminal', state: 'terminated' })

test('a stopped worker keeps its tab and can be started again', () => {
  const session = aSession({ workers: [stopped] })
  expect(tabWorkers(session)).toEqual([stopped])
  expect(canStartAgain(session, stopped)).toBe(true)
})

test('a stopped worker has no tab once another one has its role', () => {
  const session = aSession({ workers: [stopped, running] })
  expect(tabWorkers(session)).toEqual([running])
  expect(canStartAgain(session, stopped)).toBe(false)
  expect(canStartAgain(session, running)).toBe(false)
})

test('a command that its agent has released has no tab', () => {
  expect(tabWorkers(aSession({ workers: [command] }))).toEqual([])
})
