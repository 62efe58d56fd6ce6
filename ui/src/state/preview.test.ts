import { describe, expect, test } from 'vitest'
import { chosenOf, pathOf, previewOf } from './preview.ts'

const at = (hostname: string, port = '7420') => ({ hostname, port })
const on = (address: string, port = 3000) => ({ address, port })

describe('a page on the machine of the server', () => {
  test.each(['127.0.0.1', '0.0.0.0', '::', '::1'])('shows what listens on %s under another name than its own', (address) => {
    for (const hostname of ['127.0.0.1', '[::1]']) expect(previewOf(on(address), at(hostname))).toMatchObject({ kind: 'frame', address: 'http://localhost:3000/' })
  })

  test.each(['127.0.0.1', '0.0.0.0', '::'])('at localhost shows what listens on %s by its number', (address) => {
    expect(previewOf(on(address), at('localhost'))).toMatchObject({ kind: 'frame', address: 'http://127.0.0.1:3000/' })
  })

  test('at localhost only opens what listens on ::1, since a policy cannot name it', () => {
    expect(previewOf(on('::1'), at('localhost'))).toMatchObject({ kind: 'tab', address: 'http://[::1]:3000/' })
  })

  test.each([
    ['192.168.1.5', 'http://192.168.1.5:3000/'],
    ['127.0.0.2', 'http://127.0.0.2:3000/'],
    ['fe80::1', 'http://[fe80::1]:3000/'],
  ])('only opens what listens on %s', (address, there) => {
    expect(previewOf(on(address), at('127.0.0.1'))).toMatchObject({ kind: 'tab', address: there })
  })

  test('tells the command for whoever came through a tunnel', () => {
    expect(previewOf(on('0.0.0.0'), at('localhost'))).toMatchObject({ tunnel: 'ssh -L 3000:127.0.0.1:3000 <host>' })
  })

  test('never frames its own port, under whatever name', () => {
    for (const hostname of ['localhost', '127.0.0.1', '[::1]'])
      for (const address of ['127.0.0.1', '0.0.0.0', '::', '::1']) expect(previewOf(on(address, 7420), at(hostname)).kind).toBe('tab')
  })

  test('never frames its own name', () => {
    for (const hostname of ['localhost', '127.0.0.1', '[::1]'])
      for (const address of ['127.0.0.1', '0.0.0.0', '::', '::1', '10.0.0.1']) {
        const preview = previewOf(on(address), at(hostname))
        if (preview.kind === 'frame') expect(new URL(preview.address).hostname).not.toBe(hostname)
      }
  })
})

describe('a page elsewhere', () => {
  test('tells how to bring the port over, and has no address for what only the server reaches', () => {
    expect(previewOf(on('127.0.0.1'), at('box.example'), '/app')).toEqual({
      kind: 'elsewhere',
      tunnel: 'ssh -L 3000:127.0.0.1:3000 box.example',
      nearby: 'http://localhost:3000/app',
      direct: undefined,
    })
  })

  test.each(['0.0.0.0', '::'])('links to what listens on %s', (address) => {
    expect(previewOf(on(address), at('box.example'))).toMatchObject({ tunnel: 'ssh -L 3000:127.0.0.1:3000 box.example', direct: 'http://box.example:3000/' })
    expect(previewOf(on(address), at('[fe80::2]'))).toMatchObject({ tunnel: 'ssh -L 3000:127.0.0.1:3000 fe80::2', direct: 'http://[fe80::2]:3000/' })
  })

  test('reaches an address of its own by that address', () => {
    expect(previewOf(on('::1'), at('box.example'))).toMatchObject({ tunnel: 'ssh -L 3000:[::1]:3000 box.example' })
    expect(previewOf(on('10.0.0.1'), at('box.example'))).toMatchObject({ tunnel: 'ssh -L 3000:10.0.0.1:3000 box.example' })
  })

  test.each(['localhost.example', 'notlocalhost', '127.0.0.1.example', 'evil.localhost.example'])('at %s is not taken for this machine', (hostname) => {
    expect(previewOf(on('127.0.0.1'), at(hostname)).kind).toBe('elsewhere')
  })
})

test.each([
  ['', '/'],
  ['app', '/app'],
  [' /app?x=1#y ', '/app?x=1#y'],
  ['//evil.example/x', '/evil.example/x'],
  ['\\\\evil.example', '/evil.example'],
  ['@evil.example', '/@evil.example'],
  ['http://localhost:3000/deep/er?q=1', '/deep/er?q=1'],
  ['https://evil.example', '/'],
  ['javascript:alert(1)', '/javascript:alert(1)'],
])('what is typed as %j is the path %j and stays with its host', (typed, path) => {
  expect(pathOf(typed)).toBe(path)
  const preview = previewOf(on('127.0.0.1'), at('127.0.0.1'), typed)
  expect(preview.kind === 'frame' && new URL(preview.address).origin).toBe('http://localhost:3000')
})

test('the port that was looked at stays chosen, also when another worker has it now', () => {
  const ports = [{ port: 3000, workerId: 'a' }, { port: 3001, workerId: 'a' }, { port: 3001, workerId: 'b' }]
  expect(chosenOf(ports, undefined)).toBe(ports[0])
  expect(chosenOf(ports, { port: 3001, workerId: 'b' })).toBe(ports[2])
  expect(chosenOf(ports, { port: 3001, workerId: 'gone' })).toBe(ports[1])
  expect(chosenOf(ports, { port: 9, workerId: 'a' })).toBe(ports[0])
  expect(chosenOf([], { port: 9, workerId: 'a' })).toBeUndefined()
})
