/**
 * What programs want with the clipboard (OSC 52): putting something there is asked of the person, reading it is
 * never answered.
 */
import type { IDisposable, Terminal } from '@xterm/xterm'

const CLIPBOARD_OSC = 52
const LONGEST = 1_000_000 // characters of base64

export function watchClipboard(terminal: Terminal, wanted: (text: string) => void): IDisposable {
  return terminal.parser.registerOscHandler(CLIPBOARD_OSC, (data) => {
    const text = decodeClipboard(data)
    if (text) wanted(text)
    return true
  })
}

/** `c;<base64>` as text; undefined for a question, for nonsense and for what is too long. */
export function decodeClipboard(data: string): string | undefined {
  const payload = data.slice(data.indexOf(';') + 1)
  if (!payload || payload === '?' || payload.length > LONGEST) return undefined
  try {
    const bytes = Uint8Array.from(atob(payload), (unit) => unit.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
