/** Detect the programming language of a file from its name. */
import { languageOf } from '../markdown/languages.ts'

const NAMES: Record<string, string> = { dockerfile: 'docker', makefile: 'make', gnumakefile: 'make', '.bashrc': 'bash', '.zshrc': 'bash' }
const ENDINGS: Record<string, string> = { h: 'c', hpp: 'c', htm: 'html', svg: 'xml', mts: 'typescript', cts: 'typescript', cjs: 'javascript', pyi: 'python', markdown: 'markdown' }

/** Return the supported language of a file, or undefined. */
export function languageOfPath(path: string): string | undefined {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
  const ending = name.slice(name.lastIndexOf('.') + 1)
  return languageOf(NAMES[name] ?? ENDINGS[ending] ?? ending)
}

export function isMarkdown(path: string): boolean {
  return /\.(md|markdown)$/i.test(path)
}
