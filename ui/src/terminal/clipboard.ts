/**
 * Handle clipboard requests of programs (OSC 52): copying needs the consent of the user, and reading is never answered.
 */
import type { IDisposable, Terminal } from '@xterm/xterm'

const CLIPBOARD_OSC = 52
const MAX_BASE64_CHARACTERS = 1_000_000

/** Call `onRequest` with each text that a program wants to copy. */
export function watchClipboard(terminal: Terminal, onRequest: (text: string) => void): IDisposable {
  return terminal.parser.registerOscHandler(CLIPBOARD_OSC, (data) => {
    const text = decodeClipboard(data)
    if (text) onRequest(text)
    return true
  })
}

/** Decode `c;<base64>`; return undefined for a read request, and for invalid or too long data. */
export function decodeClipboard(data: string): string | undefined {
  const payload = data.slice(data.indexOf(';') + 1)
  if (!payload || payload === '?' || payload.length > MAX_BASE64_CHARACTERS) return undefined
  try {
    const bytes = Uint8Array.from(atob(payload), (unit) => unit.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
