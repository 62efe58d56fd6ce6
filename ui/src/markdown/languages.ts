/** The languages with syntax colours, each loaded as a separate file, and their alternative names. */
import type { LanguageInput } from 'shiki/core'

export const GRAMMARS: Record<string, () => LanguageInput> = {
  bash: () => import('shiki/langs/bash.mjs'),
  c: () => import('shiki/langs/c.mjs'),
  csharp: () => import('shiki/langs/csharp.mjs'),
  css: () => import('shiki/langs/css.mjs'),
  diff: () => import('shiki/langs/diff.mjs'),
  docker: () => import('shiki/langs/docker.mjs'),
  go: () => import('shiki/langs/go.mjs'),
  html: () => import('shiki/langs/html.mjs'),
  java: () => import('shiki/langs/java.mjs'),
  javascript: () => import('shiki/langs/javascript.mjs'),
  json: () => import('shiki/langs/json.mjs'),
  jsx: () => import('shiki/langs/jsx.mjs'),
  kotlin: () => import('shiki/langs/kotlin.mjs'),
  lua: () => import('shiki/langs/lua.mjs'),
  make: () => import('shiki/langs/make.mjs'),
  markdown: () => import('shiki/langs/markdown.mjs'),
  php: () => import('shiki/langs/php.mjs'),
  python: () => import('shiki/langs/python.mjs'),
  rust: () => import('shiki/langs/rust.mjs'),
  sql: () => import('shiki/langs/sql.mjs'),
  svelte: () => import('shiki/langs/svelte.mjs'),
  swift: () => import('shiki/langs/swift.mjs'),
  toml: () => import('shiki/langs/toml.mjs'),
  tsx: () => import('shiki/langs/tsx.mjs'),
  typescript: () => import('shiki/langs/typescript.mjs'),
  xml: () => import('shiki/langs/xml.mjs'),
  yaml: () => import('shiki/langs/yaml.mjs'),
}

const NAMES: Record<string, string> = {
  'c++': 'c', cpp: 'c', cc: 'c', 'c#': 'csharp', console: 'bash', cs: 'csharp', dockerfile: 'docker', golang: 'go', js: 'javascript', jsonc: 'json', kt: 'kotlin',
  makefile: 'make', md: 'markdown', mjs: 'javascript', patch: 'diff', py: 'python', rs: 'rust', sh: 'bash', shell: 'bash', ts: 'typescript',
  yml: 'yaml', zsh: 'bash',
}

/** Return the supported language for a name or alternative name, or undefined. */
export function languageOf(name: string): string | undefined {
  const known = NAMES[name] ?? name
  return Object.hasOwn(GRAMMARS, known) ? known : undefined
}
