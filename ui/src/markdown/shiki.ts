/** Shiki as we use it: one piece for the bundler, fetched when the first code is to be coloured. */
import { createCssVariablesTheme, createHighlighterCore, type HighlighterCore } from 'shiki/core'
import { createJavaScriptRegexEngine } from 'shiki/engine/javascript'

export function newHighlighter(): Promise<HighlighterCore> {
  const theme = createCssVariablesTheme({ name: 'css-variables', variablePrefix: '--shiki-' })
  return createHighlighterCore({ themes: [theme], engine: createJavaScriptRegexEngine({ forgiving: true }) })
}
