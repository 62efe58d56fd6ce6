/**
 * Where the page of a program that listens is to be seen from this browser, and whether a frame may show it.
 *
 * Cookies ignore ports. So a frame has another name of this machine than our page has: our cookie is not sent there,
 * and the frame is never of our origin.
 */
import type { Port } from '../api/types/ports.ts'

export type Preview =
  | { kind: 'frame'; address: string; tunnel: string }
  | { kind: 'tab'; address: string; why: string }
  | { kind: 'elsewhere'; tunnel: string; nearby: string; direct: string | undefined }

/** Of our own page, as `location` has it. */
export type Here = Pick<Location, 'hostname' | 'port'>
export type Listening = Pick<Port, 'port' | 'address'>

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']
const EVERY_ADDRESS = ['0.0.0.0', '::']

export function previewOf(listening: Listening, here: Here, path = ''): Preview {
  if (!LOOPBACK.includes(here.hostname)) return elsewhere(listening, here, path)
  const why = whyNoFrame(listening, here)
  if (why) return { kind: 'tab', address: addressOf(bracketed(listening.address), listening.port, path), why }
  return { kind: 'frame', address: addressOf(otherName(here), listening.port, path), tunnel: tunnelTo(listening, '<host>') }
}

/** The path of what a person typed, be it a path or a whole address; it cannot lead to another host. */
export function pathOf(typed: string): string {
  const text = typed.trim()
  const whole = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  return `/${(whole ? whole.pathname + whole.search + whole.hash : text).replace(/^[/\\]+/, '')}`
}

/** The one that was looked at last, or the first. */
export function chosenOf<T extends Pick<Port, 'port' | 'workerId'>>(ports: readonly T[], last: { port: number; workerId: string } | undefined): T | undefined {
  const same = (each: T) => each.port === last?.port
  return ports.find((each) => same(each) && each.workerId === last?.workerId) ?? ports.find(same) ?? ports[0]
}

function whyNoFrame({ address, port }: Listening, here: Here): string | undefined {
  if (String(port) === here.port) return 'It listens on the port of Bullpen itself, and is not shown inside of it.'
  if (address === '::1' && otherName(here) === '127.0.0.1') return 'It listens on ::1 only. Open Bullpen at 127.0.0.1 to see it here.'
  if (![...EVERY_ADDRESS, '127.0.0.1', '::1'].includes(address)) return `It listens on ${address} only, which is not shown in a frame.`
  return undefined
}

/** `localhost` reaches 127.0.0.1 and ::1. A policy cannot name [::1], so it is never the name of a frame. */
function otherName({ hostname }: Here): string {
  return hostname === 'localhost' ? '127.0.0.1' : 'localhost'
}

function elsewhere({ address, port }: Listening, { hostname }: Here, path: string): Preview {
  return {
    kind: 'elsewhere',
    tunnel: tunnelTo({ address, port }, hostname.replace(/^\[|\]$/g, '')),
    nearby: addressOf('localhost', port, path),
    direct: EVERY_ADDRESS.includes(address) ? addressOf(hostname, port, path) : undefined,
  }
}

/** The command that brings a port of the server to the same port of the machine it is typed on. */
function tunnelTo({ address, port }: Listening, host: string): string {
  const target = EVERY_ADDRESS.includes(address) ? '127.0.0.1' : bracketed(address)
  return `ssh -L ${port}:${target}:${port} ${host}`
}

function addressOf(name: string, port: number, path: string): string {
  return `http://${name}:${port}${pathOf(path)}`
}

function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address
}
