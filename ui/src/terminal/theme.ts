/** Read xterm's colours from the CSS variables of the page, so that terminals follow its theme. */
import type { ISearchDecorationOptions } from '@xterm/addon-search'
import type { ITheme } from '@xterm/xterm'

const ANSI = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const

/** Return the colours of the terminal for an element. */
export function themeFrom(element: Element): ITheme {
  const tokens = getComputedStyle(element)
  const token = (name: string) => tokens.getPropertyValue(`--terminal-${name}`).trim()
  const theme: Record<string, string> = {
    background: token('background'),
    foreground: token('foreground'),
    cursor: token('cursor'),
    cursorAccent: token('background'),
    selectionBackground: token('selection'),
  }
  for (const name of ANSI) {
    theme[name] = token(name)
    theme[`bright${name[0]?.toUpperCase()}${name.slice(1)}`] = token(`bright-${name}`)
  }
  return theme
}

/** Return the colours of search matches. */
export function matchColours(element: Element): ISearchDecorationOptions {
  const tokens = getComputedStyle(element)
  const token = (name: string) => tokens.getPropertyValue(name).trim()
  return {
    matchBackground: token('--warn-soft'),
    matchOverviewRuler: token('--warn-mark'),
    activeMatchBackground: token('--terminal-selection'),
    activeMatchBorder: token('--warn-mark'),
    activeMatchColorOverviewRuler: token('--accent'),
  }
}
