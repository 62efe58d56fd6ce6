/**
 * Add syntax colours to finished code blocks. Shiki and its grammars are loaded with the first code block; tokens become
 * spans with a class, because the content security policy allows no inline styles.
 */
import type { HighlighterCore } from 'shiki/core'
import { GRAMMARS, languageOf } from './languages.ts'

const MAX_CHARACTERS = 60_000 // characters; longer code is not coloured
const queue: globalThis.Element[] = []
let running = false
let loading: Promise<HighlighterCore> | undefined

/** Colour a code block later, when the page is idle. */
export function highlight(figure: globalThis.Element): void {
  if (!languageOf((figure as HTMLElement).dataset.language ?? '')) return
  queue.push(figure)
  if (!running) void colourQueue()
}

async function colourQueue(): Promise<void> {
  running = true
  for (let figure = queue.shift(); figure; figure = queue.shift()) {
    await idle()
    if (figure.isConnected) await colour(figure as HTMLElement)
  }
  running = false
}

/** Replace the text of a code block by coloured pieces, unless it is long, has an unknown language or is already coloured. */
async function colour(figure: HTMLElement): Promise<void> {
  const code = figure.querySelector('code')
  const language = languageOf(figure.dataset.language ?? '')
  const text = code?.textContent ?? ''
  if (!code || !language || text.length > MAX_CHARACTERS || code.firstElementChild) return
  const lines = await tokensOf(text, language)
  const pieces = lines.flatMap((line, n) => [...(n ? ['\n'] : []), ...line.map(tokenNode)])
  code.replaceChildren(...pieces)
}

/** A piece of code and its kind, drawn with the class `token-<name>`. */
export interface CodeToken {
  text: string
  name: string | undefined
}

/** Return the tokens of each line of a text in a supported language; a too long text gets plain lines. */
export async function tokensOf(text: string, language: string): Promise<CodeToken[][]> {
  if (text.length > MAX_CHARACTERS) return text.split('\n').map((line) => [{ text: line, name: undefined }])
  const highlighter = await highlighterFor(language)
  const lines = highlighter.codeToTokensBase(text, { lang: language, theme: 'css-variables' })
  return lines.map((line) => line.map(({ content, color }) => ({ text: content, name: /--shiki-token-([\w-]+)/.exec(color ?? '')?.[1] })))
}

function tokenNode({ text, name }: CodeToken): string | HTMLElement {
  if (!name) return text
  const span = document.createElement('span')
  span.className = `token-${name}`
  span.textContent = text
  return span
}

async function highlighterFor(language: string): Promise<HighlighterCore> {
  loading ??= import('./shiki.ts').then(({ newHighlighter }) => newHighlighter())
  const highlighter = await loading
  if (!highlighter.getLoadedLanguages().includes(language)) await highlighter.loadLanguage(GRAMMARS[language]!())
  return highlighter
}

/** Wait until the page is idle, at most half a second. */
function idle(): Promise<void> {
  return new Promise((resolve) => ('requestIdleCallback' in window ? requestIdleCallback(() => resolve(), { timeout: 500 }) : setTimeout(resolve, 20)))
}
