/** What a person pastes: harmless for the terminal, and asked about when it would do more than it looks like. */
const LONG = 5_000 // characters
// Tab and line ends stay. An escape could end the brackets a program puts round a paste, and type after them.
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g

export function withoutControls(text: string): string {
  return text.replace(CONTROLS, '')
}

/** Why this should not be typed without a question; `bracketed` when the program takes a paste as one piece. */
export function doubtAbout(text: string, bracketed: boolean): string | undefined {
  const lines = text.replace(/[\r\n]+$/, '').split(/\r\n|\r|\n/).length
  if (text.length > LONG) return `It is ${text.length.toLocaleString('en')} characters long, in ${plural(lines)}.`
  if (!bracketed && /[\r\n]/.test(text)) return `It has ${plural(lines)}, and the program takes each as if you pressed Enter after it.`
  return undefined
}

/** The beginning, to recognise it by. */
export function beginningOf(text: string): string {
  const short = text.slice(0, 120).replace(/\s+/g, ' ').trim()
  return text.length > 120 ? `${short} …` : short
}

function plural(lines: number): string {
  return lines === 1 ? 'one line' : `${lines} lines`
}
