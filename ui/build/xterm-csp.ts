/**
 * Rewrite xterm at build time so that it works under a content security policy without inline styles.
 *
 * xterm creates <style> elements and sets style attributes. `style-src 'self'` blocks both, so they are replaced by
 * <bullpen-sheet> (src/terminal/sheet.ts) and by the CSSOM. The build fails if a new xterm no longer matches the patterns.
 */
import type { Plugin } from 'vite'

interface Rewrite {
  description: string
  pattern: RegExp
  replacement: string
  expectedMatches: number
}

const REWRITES: Rewrite[] = [
  { description: 'style elements', pattern: /\.createElement\("style"\)/g, replacement: '.createElement("bullpen-sheet")', expectedMatches: 3 },
  {
    description: 'style attributes',
    pattern: /(\w+)\.setAttribute\("style",`\$\{\1\.getAttribute\("style"\)\|\|""\}\$\{(\w+)\};`\)/g,
    replacement: '$1.style.cssText+=$2+";"',
    expectedMatches: 1,
  },
]

export function xtermCsp(): Plugin {
  return {
    name: 'bullpen:xterm-csp',
    transform: {
      filter: { id: /@xterm\/xterm\/lib\/xterm\.mjs$/ },
      handler(code) {
        for (const { description, pattern, replacement, expectedMatches } of REWRITES) {
          const found = code.match(pattern)?.length ?? 0
          if (found !== expectedMatches) this.error(`Expected ${expectedMatches} ${description} in xterm, found ${found}. Read its new source and update REWRITES.`)
          code = code.replace(pattern, replacement)
        }
        return { code, map: null }
      },
    },
  }
}
