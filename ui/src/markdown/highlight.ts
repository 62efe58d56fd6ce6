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
  const lines = await tokensOf(text, language)
  const pieces = lines.flatMap((line, n) => [...(n ? ['\n'] : []), ...line.map(piece)])
  code.replaceChildren(...pieces)
}

/** A piece of code and what it is: drawn with the class `token-<name>`. */
export interface CodeToken {
  text: string
  name: string | undefined
}

/** The pieces of each line of a text in one of our languages; plain lines when it is too long to be looked at. */
export async function tokensOf(text: string, language: string): Promise<CodeToken[][]> {
  if (text.length > LONGEST) return text.split('\n').map((line) => [{ text: line, name: undefined }])
  const highlighter = await ready(language)
  const lines = highlighter.codeToTokensBase(text, { lang: language, theme: 'css-variables' })
  return lines.map((line) => line.map(({ content, color }) => ({ text: content, name: /--shiki-token-([\w-]+)/.exec(color ?? '')?.[1] })))
}

function piece({ text, name }: CodeToken): string | HTMLElement {
  if (!name) return text
  const span = document.createElement('span')
  span.className = `token-${name}`
  span.textContent = text
  return span
}

async function ready(language: string): Promise<HighlighterCore> {
  loading ??= import('./shiki.ts').then(({ newHighlighter }) => newHighlighter())
  const highlighter = await loading
  if (!highlighter.getLoadedLanguages().includes(language)) await highlighter.loadLanguage(GRAMMARS[language]!())
  return highlighter
}

function idle(): Promise<void> {
  return new Promise((resolve) => ('requestIdleCallback' in window ? requestIdleCallback(() => resolve(), { timeout: 500 }) : setTimeout(resolve, 20)))
}
