/**
 * Make xterm draw under a policy without inline styles. It creates <style> elements and sets style
 * attributes, both of which `style-src 'self'` blocks; here they become our <bullpen-sheet> (see
 * src/terminal/sheet.ts) and the CSSOM, which it allows. A new xterm that says it differently stops the build.
 */
import type { Plugin } from 'vite'

interface Rewrite {
  what: string
  find: RegExp
  put: string
  times: number
}

const REWRITES: Rewrite[] = [
  { what: 'style elements', find: /\.createElement\("style"\)/g, put: '.createElement("bullpen-sheet")', times: 3 },
  {
    what: 'style attributes',
    find: /(\w+)\.setAttribute\("style",`\$\{\1\.getAttribute\("style"\)\|\|""\}\$\{(\w+)\};`\)/g,
    put: '$1.style.cssText+=$2+";"',
    times: 1,
  },
]

export function xtermCsp(): Plugin {
  return {
    name: 'bullpen:xterm-csp',
    transform: {
      filter: { id: /@xterm\/xterm\/lib\/xterm\.mjs$/ },
      handler(code) {
        for (const { what, find, put, times } of REWRITES) {
          const found = code.match(find)?.length ?? 0
          if (found !== times) this.error(`xterm has ${found} places for ${what}, not ${times}: read its new source`)
          code = code.replace(find, put)
        }
        return { code, map: null }
      },
    },
  }
}
