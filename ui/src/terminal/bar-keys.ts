/** The keys of the key bar for phones, and the bytes that they send. */

export interface BarKey {
  label: string
  name: string
  /** Return the text to send; `application` is the application cursor mode, in which arrow keys differ. */
  types: (application: boolean) => string
}

const arrow = (label: string, name: string, final: string): BarKey => ({
  label,
  name,
  types: (application) => `\x1b${application ? 'O' : '['}${final}`,
})
const key = (label: string, name: string, text: string): BarKey => ({ label, name, types: () => text })

export const BEFORE_CTRL: readonly BarKey[] = [key('Esc', 'Esc', '\x1b'), key('Tab', 'Tab', '\t'), key('⇧Tab', 'Shift and Tab', '\x1b[Z')]
export const AFTER_CTRL: readonly BarKey[] = [
  arrow('←', 'Left', 'D'),
  arrow('↑', 'Up', 'A'),
  arrow('↓', 'Down', 'B'),
  arrow('→', 'Right', 'C'),
  key('/', 'Slash', '/'),
  key('|', 'Pipe', '|'),
]

/** Return the control character for a character with Ctrl, or the character unchanged if there is none. */
export function withCtrl(data: string): string {
  if (data === '?') return '\x7f'
  if (data === ' ') return '\0'
  const code = data.length === 1 ? data.toUpperCase().charCodeAt(0) : 0
  return code >= 0x40 && code <= 0x5f ? String.fromCharCode(code - 0x40) : data
}
