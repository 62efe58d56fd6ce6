/** Apply the light or dark theme of the system or of the user's choice, and notify listeners such as terminals. */
import { remembered } from './remembered.ts'

export type Theme = 'system' | 'light' | 'dark'

const stored = remembered<Theme>('theme', 'system')
const listeners = new Set<() => void>()

export function theme(): Theme {
  return stored.value
}

export function setTheme(next: Theme): void {
  stored.value = next
  apply()
}

/** Call the listener whenever the colours change; return a function that removes it. */
export function onThemeChange(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Apply the theme and follow the system. Called once, before the page is drawn. */
export function startTheme(): void {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply)
  apply()
}

function apply(): void {
  const dark = stored.value === 'dark' || (stored.value === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset.theme = dark ? 'dark' : 'light'
  const colour = getComputedStyle(document.documentElement).getPropertyValue('--surface').trim()
  document.querySelector('meta[name=theme-color]')?.setAttribute('content', colour)
  for (const listener of listeners) listener()
}
