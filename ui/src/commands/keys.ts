/** Names of keyboard shortcuts, such as "Mod+Shift+D": read them from key events and format them. `Mod` is ⌘ on a Mac and Ctrl elsewhere. */

export const MAC = typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.platform)

const KEY_SYMBOLS: Record<string, string> = MAC
  ? { Mod: '⌘', Ctrl: '⌃', Alt: '⌥', Shift: '⇧', Enter: '↵', Escape: 'Esc', ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→' }
  : { Mod: 'Ctrl', Enter: '↵', Escape: 'Esc', ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→' }

/** Format a shortcut for display, such as "Ctrl+K" or "⌘K". */
export function formatKeys(keys: string): string {
  return keys.split('+').map((part) => KEY_SYMBOLS[part] ?? part).join(MAC ? '' : '+')
}

/** Shortcuts that browsers handle before the page: open, close and switch tabs and windows, and quit. */
const BROWSER_KEYS: ReadonlySet<string> = new Set([
  ...['N', 'T', 'W', 'Q', 'Tab', 'PageUp', 'PageDown'].flatMap((key) => [`Mod+${key}`, `Mod+Shift+${key}`, `Ctrl+${key}`, `Ctrl+Shift+${key}`]),
  'Alt+F4',
])

/** Return whether the browser handles this shortcut, so that a page never gets it. */
export function belongsToBrowser(keys: string): boolean {
  return BROWSER_KEYS.has(keys)
}

/** Return the shortcut name of a key event, or undefined if only modifiers are pressed. */
export function pressedKeys(event: Pick<KeyboardEvent, 'key' | 'code' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>, mac = MAC): string | undefined {
  if (['Control', 'Meta', 'Alt', 'Shift', 'AltGraph'].includes(event.key)) return undefined
  if (event.key === 'Dead' && !event.altKey) return undefined // with Alt a dead key is named by its letter, as in ⌥N
  if (event.key === '?' && !event.ctrlKey && !event.metaKey && !event.altKey) return '?' // at any position of the layout
  const parts: string[] = []
  if (mac ? event.metaKey : event.ctrlKey) parts.push('Mod')
  if (mac && event.ctrlKey) parts.push('Ctrl')
  if (event.altKey) parts.push('Alt')
  if (event.shiftKey) parts.push('Shift')
  return [...parts, keyName(event)].join('+')
}

/** Return the name of the key itself. Letters and digits are named by their position, because modifiers change the character they print. */
function keyName({ key, code, altKey, shiftKey }: Pick<KeyboardEvent, 'key' | 'code' | 'altKey' | 'shiftKey'>): string {
  const plain = /^(?:Key|Digit)(.)$/.exec(code)?.[1]
  if (plain && (altKey || shiftKey || /^[a-z0-9]$/i.test(key))) return plain
  if (code === 'Slash' || key === '/') return '/'
  if (key === ' ') return 'Space'
  return key.length === 1 ? key.toUpperCase() : key
}

/** Return whether a shortcut works while the user types: only with a modifier, because the key then prints no character. */
export function isSafeWhileTyping(keys: string): boolean {
  return keys.startsWith('Mod+') || keys.startsWith('Ctrl+') || keys.startsWith('Alt+') || /^F\d+$/.test(keys)
}
