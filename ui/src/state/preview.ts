/**
 * Decide at which address this browser can open the web page of a program, and whether a frame may show it.
 *
 * Cookies ignore ports. So a frame uses another host name of this machine than our page: our cookie is not sent there,
 * and the frame never has our origin.
 */
import type { Port } from '../api/types/ports.ts'

export type Preview =
  | { kind: 'frame'; address: string; tunnel: string }
  | { kind: 'tab'; address: string; reason: string }
  | { kind: 'elsewhere'; tunnel: string; localAddress: string; directAddress: string | undefined }

/** The host name and port of our own page, as in `location`. */
export type PageLocation = Pick<Location, 'hostname' | 'port'>
export type ListeningPort = Pick<Port, 'port' | 'address'>

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']
const EVERY_ADDRESS = ['0.0.0.0', '::']

/** Return how the page of a port can be shown: in a frame, in a tab, or after forwarding the port. */
export function previewOf(listening: ListeningPort, page: PageLocation, path = ''): Preview {
  if (!LOOPBACK.includes(page.hostname)) return elsewhere(listening, page, path)
  const reason = frameObstacle(listening, page)
  if (reason) return { kind: 'tab', address: addressOf(bracketed(listening.address), listening.port, path), reason }
  return { kind: 'frame', address: addressOf(otherHostName(page), listening.port, path), tunnel: tunnelTo(listening, '<host>') }
}

/** Return the path of a typed path or whole address; the result cannot lead to another host. */
export function pathOf(typed: string): string {
  const text = typed.trim()
  const whole = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  return `/${(whole ? whole.pathname + whole.search + whole.hash : text).replace(/^[/\\]+/, '')}`
}

/** Return the port and the path of a page of the server's machine, or undefined without one. */
export function pageOf(url: string | null): { listening: ListeningPort; path: string } | undefined {
  const parsed = url === null ? null : URL.parse(url)
  if (!parsed) return undefined
  const address = parsed.hostname === '[::1]' ? '::1' : '127.0.0.1'
  return { listening: { port: Number(parsed.port || 80), address }, path: pathOf(parsed.href) }
}

/** Return the port that was shown last, else the same port of another worker, else the first port; undefined if there is none. */
export function choosePort<T extends Pick<Port, 'port' | 'workerId'>>(ports: readonly T[], last: { port: number; workerId: string } | undefined): T | undefined {
  const same = (each: T) => each.port === last?.port
  return ports.find((each) => same(each) && each.workerId === last?.workerId) ?? ports.find(same) ?? ports[0]
}

/** Return why a frame cannot show a port, or undefined if it can. */
function frameObstacle({ address, port }: ListeningPort, page: PageLocation): string | undefined {
  if (String(port) === page.port) return 'This program listens on the port of Bullpen itself, which cannot be shown in a frame.'
  if (address === '::1' && otherHostName(page) === '127.0.0.1') return 'This program listens on ::1 only. Open Bullpen at 127.0.0.1 to see its page here.'
  if (![...EVERY_ADDRESS, '127.0.0.1', '::1'].includes(address)) return `This program listens on ${address} only, which cannot be shown in a frame.`
  return undefined
}

/** Return another host name of this machine. `localhost` reaches 127.0.0.1 and ::1; [::1] is never used, because a content security policy cannot name it. */
function otherHostName({ hostname }: PageLocation): string {
  return hostname === 'localhost' ? '127.0.0.1' : 'localhost'
}

/** Return how a browser on another machine reaches the port: an SSH tunnel, or the direct address if there is one. */
function elsewhere({ address, port }: ListeningPort, { hostname }: PageLocation, path: string): Preview {
  return {
    kind: 'elsewhere',
    tunnel: tunnelTo({ address, port }, hostname.replace(/^\[|\]$/g, '')),
    localAddress: addressOf('localhost', port, path),
    directAddress: EVERY_ADDRESS.includes(address) ? addressOf(hostname, port, path) : undefined,
  }
}

/** Return the ssh command that forwards a port of the server to the same port of the local machine. */
function tunnelTo({ address, port }: ListeningPort, host: string): string {
  const target = EVERY_ADDRESS.includes(address) ? '127.0.0.1' : bracketed(address)
  return `ssh -L ${port}:${target}:${port} ${host}`
}

function addressOf(name: string, port: number, path: string): string {
  return `http://${name}:${port}${pathOf(path)}`
}

/** Return an address as it is written in a URL: IPv6 addresses in brackets. */
function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address
}
