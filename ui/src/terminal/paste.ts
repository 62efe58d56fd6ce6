/** Make pasted text safe for a terminal, and decide whether the user must confirm it. */

const CONFIRM_CHARACTERS = 5_000 // longer texts need a confirmation
// Tabs and line ends stay. An escape sequence could end a bracketed paste, and the text after it would count as typed.
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g

/** Remove control characters except tabs and line ends. */
export function withoutControls(text: string): string {
  return text.replace(CONTROLS, '')
}

/** Return why a paste needs a confirmation, or undefined; `bracketed` if the program supports bracketed paste. */
export function pasteWarning(text: string, bracketed: boolean): string | undefined {
  const lines = text.replace(/[\r\n]+$/, '').split(/\r\n|\r|\n/).length
  if (text.length > CONFIRM_CHARACTERS) return `The text is ${text.length.toLocaleString('en')} characters long, in ${plural(lines)}.`
  if (!bracketed && /[\r\n]/.test(text)) return `The text has ${plural(lines)}, and the program handles each as if you pressed Enter after it.`
  return undefined
}

/** Return the first 120 characters of a text on one line. */
export function excerpt(text: string): string {
  const short = text.slice(0, 120).replace(/\s+/g, ' ').trim()
  return text.length > 120 ? `${short} …` : short
}

function plural(lines: number): string {
  return lines === 1 ? 'one line' : `${lines} lines`
}
