import { describe, expect, test } from 'vitest'
import { choosePort, pageOf, pathOf, previewOf } from './preview.ts'

const at = (hostname: string, port = '7420') => ({ hostname, port })
const on = (address: string, port = 3000) => ({ address, port })

describe('a page on the machine of the server', () => {
  test.each(['127.0.0.1', '0.0.0.0', '::', '::1'])('frames a program on %s under another host name than its own', (address) => {
    for (const hostname of ['127.0.0.1', '[::1]']) expect(previewOf(on(address), at(hostname))).toMatchObject({ kind: 'frame', address: 'http://localhost:3000/' })
  })

  test.each(['127.0.0.1', '0.0.0.0', '::'])('at localhost frames a program on %s by its IP address', (address) => {
    expect(previewOf(on(address), at('localhost'))).toMatchObject({ kind: 'frame', address: 'http://127.0.0.1:3000/' })
  })

  test('at localhost opens a program on ::1 in a tab, because the content security policy cannot name it', () => {
    expect(previewOf(on('::1'), at('localhost'))).toMatchObject({ kind: 'tab', address: 'http://[::1]:3000/' })
  })

  test.each([
    ['192.168.1.5', 'http://192.168.1.5:3000/'],
    ['127.0.0.2', 'http://127.0.0.2:3000/'],
    ['fe80::1', 'http://[fe80::1]:3000/'],
  ])('opens a program on %s in a tab', (address, there) => {
    expect(previewOf(on(address), at('127.0.0.1'))).toMatchObject({ kind: 'tab', address: there })
  })

  test('shows the command that forwards the port', () => {
    expect(previewOf(on('0.0.0.0'), at('localhost'))).toMatchObject({ tunnel: 'ssh -L 3000:127.0.0.1:3000 <host>' })
  })

  test('never frames its own port, under any name', () => {
    for (const hostname of ['localhost', '127.0.0.1', '[::1]'])
      for (const address of ['127.0.0.1', '0.0.0.0', '::', '::1']) expect(previewOf(on(address, 7420), at(hostname)).kind).toBe('tab')
  })

  test('never frames its own host name', () => {
    for (const hostname of ['localhost', '127.0.0.1', '[::1]'])
      for (const address of ['127.0.0.1', '0.0.0.0', '::', '::1', '10.0.0.1']) {
        const preview = previewOf(on(address), at(hostname))
        if (preview.kind === 'frame') expect(new URL(preview.address).hostname).not.toBe(hostname)
      }
  })
})

describe('a page on another machine', () => {
  test('shows how to forward the port, and has no direct address for a loopback port', () => {
    expect(previewOf(on('127.0.0.1'), at('box.example'), '/app')).toEqual({
      kind: 'elsewhere',
      tunnel: 'ssh -L 3000:127.0.0.1:3000 box.example',
      localAddress: 'http://localhost:3000/app',
      directAddress: undefined,
    })
  })

  test.each(['0.0.0.0', '::'])('links directly to a program on %s', (address) => {
    expect(previewOf(on(address), at('box.example'))).toMatchObject({ tunnel: 'ssh -L 3000:127.0.0.1:3000 box.example', directAddress: 'http://box.example:3000/' })
    expect(previewOf(on(address), at('[fe80::2]'))).toMatchObject({ tunnel: 'ssh -L 3000:127.0.0.1:3000 fe80::2', directAddress: 'http://[fe80::2]:3000/' })
  })

  test('forwards to a specific address of the server', () => {
    expect(previewOf(on('::1'), at('box.example'))).toMatchObject({ tunnel: 'ssh -L 3000:[::1]:3000 box.example' })
    expect(previewOf(on('10.0.0.1'), at('box.example'))).toMatchObject({ tunnel: 'ssh -L 3000:10.0.0.1:3000 box.example' })
  })

  test.each(['localhost.example', 'notlocalhost', '127.0.0.1.example', 'evil.localhost.example'])('at %s does not count as this machine', (hostname) => {
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
])('the input %j becomes the path %j on the same host', (typed, path) => {
  expect(pathOf(typed)).toBe(path)
  const preview = previewOf(on('127.0.0.1'), at('127.0.0.1'), typed)
  expect(preview.kind === 'frame' && new URL(preview.address).origin).toBe('http://localhost:3000')
})

test('the last chosen port stays chosen, also if another worker has it now', () => {
  const ports = [{ port: 3000, workerId: 'a' }, { port: 3001, workerId: 'a' }, { port: 3001, workerId: 'b' }]
  expect(choosePort(ports, undefined)).toBe(ports[0])
  expect(choosePort(ports, { port: 3001, workerId: 'b' })).toBe(ports[2])
  expect(choosePort(ports, { port: 3001, workerId: 'gone' })).toBe(ports[1])
  expect(choosePort(ports, { port: 9, workerId: 'a' })).toBe(ports[0])
  expect(choosePort([], { port: 9, workerId: 'a' })).toBeUndefined()
})

test('the page of a web worker is a port of this machine and a path', () => {
  expect(pageOf('http://localhost:5173/a?b=1#c')).toEqual({ listening: { port: 5173, address: '127.0.0.1' }, path: '/a?b=1#c' })
  expect(pageOf('http://[::1]:8080/')).toEqual({ listening: { port: 8080, address: '::1' }, path: '/' })
  expect(pageOf('http://127.0.0.1:80/')).toEqual({ listening: { port: 80, address: '127.0.0.1' }, path: '/' })
  expect(pageOf(null)).toBeUndefined()
})
