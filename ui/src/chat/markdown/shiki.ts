/** The parts of Shiki we use, so that the bundler makes one piece of them that is fetched when needed. */
export { createCssVariablesTheme, createHighlighterCore } from 'shiki/core'
export { createJavaScriptRegexEngine } from 'shiki/engine/javascript'
