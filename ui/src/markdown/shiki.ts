/** Create the Shiki highlighter; a separate file that is loaded with the first code block. */
import { createCssVariablesTheme, createHighlighterCore, type HighlighterCore } from 'shiki/core'
import { createJavaScriptRegexEngine } from 'shiki/engine/javascript'

export function newHighlighter(): Promise<HighlighterCore> {
  const theme = createCssVariablesTheme({ name: 'css-variables', variablePrefix: '--shiki-' })
  return createHighlighterCore({ themes: [theme], engine: createJavaScriptRegexEngine({ forgiving: true }) })
}
