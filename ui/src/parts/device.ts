/** What a person calls the browser they use. */

const BROWSERS = [
  ['Edge', /\bEdgA?\//],
  ['Opera', /\bOPR\//],
  ['Firefox', /\b(Firefox|FxiOS)\//],
  ['Chrome', /Chrome\/|CriOS\//],
  ['Safari', /Safari\//],
] as const
const SYSTEMS = [
  ['iPhone', /iPhone/],
  ['iPad', /iPad/],
  ['Android', /Android/],
  ['macOS', /Mac OS X/],
  ['Windows', /Windows/],
  ['ChromeOS', /CrOS/],
  ['Linux', /Linux/],
] as const

/** "Chrome on Linux" for what a browser calls itself; anything else is somebody's own name. */
export function deviceName(name: string): string {
  const [browser, system] = [BROWSERS, SYSTEMS].map((known) => known.find(([, sign]) => sign.test(name))?.[0])
  return browser && system ? `${browser} on ${system}` : name
}
