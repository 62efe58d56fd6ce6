/** Short names of browsers, made from user agent strings. */

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

/** Return a name such as "Chrome on Linux" for a user agent string; any other name is returned unchanged. */
export function deviceName(name: string): string {
  const [browser, system] = [BROWSERS, SYSTEMS].map((known) => known.find(([, pattern]) => pattern.test(name))?.[0])
  return browser && system ? `${browser} on ${system}` : name
}
