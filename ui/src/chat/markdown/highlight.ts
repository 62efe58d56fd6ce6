/**
 * Colours code that will not change any more. Shiki and its grammars come when the first code does; tokens become
 * spans with a class, because the policy allows no inline style.
 */
import type { HighlighterCore } from 'shiki/core'
import { GRAMMARS, languageOf } from './languages.ts'

const LONGEST = 60_000 // characters; a longer one is read, not admired
const waiting: globalThis.Element[] = []
let working = false
let loading: Promise<HighlighterCore> | undefined

/** Sooner or later, when the page has nothing better to do. */
export function highlight(figure: globalThis.Element): void {
  if (!languageOf((figure as HTMLElement).dataset.language ?? '')) return
  waiting.push(figure)
  if (!working) void work()
}

async function work(): Promise<void> {
  working = true
  for (let figure = waiting.shift(); figure; figure = waiting.shift()) {
    await idle()
    if (figure.isConnected) await colour(figure as HTMLElement)
  }
  working = false
}

async function colour(figure: HTMLElement): Promise<void> {
  const code = figure.querySelector('code')
  const language = languageOf(figure.dataset.language ?? '')
  const text = code?.textContent ?? ''
  if (!code || !language || text.length > LONGEST || code.firstElementChild) return
  const highlighter = await ready(language)
  const lines = highlighter.codeToTokensBase(text, { lang: language, theme: 'css-variables' })
  const pieces = lines.flatMap((line, n) => [...(n ? ['\n'] : []), ...line.map((token) => piece(token.content, token.color))])
  code.replaceChildren(...pieces)
}

function piece(text: string, colour: string | undefined): string | HTMLElement {
  const name = /--shiki-token-([\w-]+)/.exec(colour ?? '')?.[1]
  if (!name) return text
  const span = document.createElement('span')
  span.className = `token-${name}`
  span.textContent = text
  return span
}

async function ready(language: string): Promise<HighlighterCore> {
  loading ??= load()
  const highlighter = await loading
  if (!highlighter.getLoadedLanguages().includes(language)) await highlighter.loadLanguage(GRAMMARS[language]!())
  return highlighter
}

async function load(): Promise<HighlighterCore> {
  const { createCssVariablesTheme, createHighlighterCore, createJavaScriptRegexEngine } = await import('./shiki.ts')
  const theme = createCssVariablesTheme({ name: 'css-variables', variablePrefix: '--shiki-' })
  return createHighlighterCore({ themes: [theme], engine: createJavaScriptRegexEngine({ forgiving: true }) })
}

function idle(): Promise<void> {
  return new Promise((resolve) => ('requestIdleCallback' in window ? requestIdleCallback(() => resolve(), { timeout: 500 }) : setTimeout(resolve, 20)))
}
