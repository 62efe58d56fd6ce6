/** Keys as a person writes them ("Mod+Shift+D") and as they are pressed. `Mod` is ⌘ on a Mac, Ctrl elsewhere. */

export const MAC = typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.platform)

const SIGNS: Record<string, string> = MAC
  ? { Mod: '⌘', Ctrl: '⌃', Alt: '⌥', Shift: '⇧', Enter: '↵', Escape: 'Esc', ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→' }
  : { Mod: 'Ctrl', Enter: '↵', Escape: 'Esc', ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→' }

export function formatKeys(keys: string): string {
  return keys.split('+').map((part) => SIGNS[part] ?? part).join(MAC ? '' : '+')
}

/** Browsers act on these before the page is told: new and closed tabs and windows, the way between tabs, the end. */
const OF_BROWSERS: ReadonlySet<string> = new Set([
  ...['N', 'T', 'W', 'Q', 'Tab', 'PageUp', 'PageDown'].flatMap((key) => [`Mod+${key}`, `Mod+Shift+${key}`, `Ctrl+${key}`, `Ctrl+Shift+${key}`]),
  'Alt+F4',
])

/** Whether a page never gets these keys. */
export function belongsToBrowser(keys: string): boolean {
  return OF_BROWSERS.has(keys)
}

/** The keys of a press; undefined while only modifiers are down. */
export function pressedKeys(event: Pick<KeyboardEvent, 'key' | 'code' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>, mac = MAC): string | undefined {
  if (['Control', 'Meta', 'Alt', 'Shift', 'AltGraph'].includes(event.key)) return undefined
  if (event.key === 'Dead' && !event.altKey) return undefined // with Alt it is the letter of its key, as in ⌥N
  if (event.key === '?' && !event.ctrlKey && !event.metaKey && !event.altKey) return '?' // wherever a layout has it
  const parts: string[] = []
  if (mac ? event.metaKey : event.ctrlKey) parts.push('Mod')
  if (mac && event.ctrlKey) parts.push('Ctrl')
  if (event.altKey) parts.push('Alt')
  if (event.shiftKey) parts.push('Shift')
  return [...parts, keyName(event)].join('+')
}

/** Letters and digits by where they are when a modifier changes what they print. */
function keyName({ key, code, altKey, shiftKey }: Pick<KeyboardEvent, 'key' | 'code' | 'altKey' | 'shiftKey'>): string {
  const plain = /^(?:Key|Digit)(.)$/.exec(code)?.[1]
  if (plain && (altKey || shiftKey || /^[a-z0-9]$/i.test(key))) return plain
  if (code === 'Slash' || key === '/') return '/'
  if (key === ' ') return 'Space'
  return key.length === 1 ? key.toUpperCase() : key
}

/** Whether these keys may be taken while a person types: only with a modifier that prints nothing. */
export function isSafeWhileTyping(keys: string): boolean {
  return keys.startsWith('Mod+') || keys.startsWith('Ctrl+') || keys.startsWith('Alt+') || /^F\d+$/.test(keys)
}
