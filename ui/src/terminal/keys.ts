/** The keys a phone has not, as a terminal hears them. */
export interface BarKey {
  label: string
  name: string
  /** What is typed; arrows differ while a program has asked for that (`application`). */
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

/** One character with Ctrl held, as terminals have it; what has no such form stays as it is. */
export function withCtrl(data: string): string {
  if (data === '?') return '\x7f'
  if (data === ' ') return '\0'
  const code = data.length === 1 ? data.toUpperCase().charCodeAt(0) : 0
  return code >= 0x40 && code <= 0x5f ? String.fromCharCode(code - 0x40) : data
}
