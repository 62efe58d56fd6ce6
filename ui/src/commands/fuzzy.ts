/** Fuzzy matching: score how well the letters of a query occur in a text, in order and preferably at the beginnings of words. */
export interface Fit {
  score: number
  /** The positions of the matched letters in the text. */
  at: number[]
}

/** Return the match of a query in a text, or undefined if a letter is missing. */
export function fit(query: string, text: string): Fit | undefined {
  const wanted = query.toLowerCase().replaceAll(/\s+/g, '')
  const found = text.toLowerCase()
  if (!wanted) return { score: 0, at: [] }
  const whole = found.indexOf(query.toLowerCase().trim())
  if (whole >= 0 && starts(text, whole)) return { score: 100 - whole, at: range(whole, query.trim().length) }
  const inside = whole < 0 ? undefined : { score: 5 * wanted.length - whole / 50, at: range(whole, query.trim().length) }
  const apart = scattered(wanted, text, found)
  return inside && inside.score >= (apart?.score ?? 0) ? inside : apart
}

function starts(text: string, at: number): boolean {
  return at === 0 || /[\s/:_.-]/.test(text[at - 1] ?? '')
}

function scattered(wanted: string, text: string, found: string): Fit | undefined {
  const at: number[] = []
  let score = 0
  let from = 0
  for (const letter of wanted) {
    const next = wordStart(text, found, letter, from) ?? found.indexOf(letter, from)
    if (next < 0) return undefined
    score += starts(text, next) ? 8 : next === from && at.length ? 4 : -1
    at.push(next)
    from = next + 1
  }
  return { score: score - text.length / 50, at }
}

/** Return the next position of a letter that starts a word, or `from` itself if the letter is there. */
function wordStart(text: string, found: string, letter: string, from: number): number | undefined {
  for (let at = found.indexOf(letter, from); at >= 0; at = found.indexOf(letter, at + 1)) if (starts(text, at) || at === from) return at
  return undefined
}

function range(from: number, length: number): number[] {
  return Array.from({ length }, (_, n) => from + n)
}
