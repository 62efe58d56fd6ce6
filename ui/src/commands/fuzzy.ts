/** Fuzzy matching: score how well the letters of a query occur in a text, in order and preferably at the beginnings of words. */

export interface FuzzyMatch {
  score: number
  /** The positions of the matched letters in the text. */
  positions: number[]
}

/** Return the match of a query in a text, or undefined if a letter is missing. */
export function fuzzyMatch(query: string, text: string): FuzzyMatch | undefined {
  const letters = query.toLowerCase().replaceAll(/\s+/g, '')
  const lowerText = text.toLowerCase()
  if (!letters) return { score: 0, positions: [] }
  const wholeIndex = lowerText.indexOf(query.toLowerCase().trim())
  if (wholeIndex >= 0 && startsWord(text, wholeIndex)) return { score: 100 - wholeIndex, positions: consecutive(wholeIndex, query.trim().length) }
  const insideWord = wholeIndex < 0 ? undefined : { score: 5 * letters.length - wholeIndex / 50, positions: consecutive(wholeIndex, query.trim().length) }
  // A letter that skips to a word may leave too few letters behind it: "rme" in "readme.md".
  const scattered = scatteredMatch(letters, text, lowerText, true) ?? scatteredMatch(letters, text, lowerText, false)
  return insideWord && insideWord.score >= (scattered?.score ?? 0) ? insideWord : scattered
}

function startsWord(text: string, at: number): boolean {
  return at === 0 || /[\s/:_.-]/.test(text[at - 1] ?? '')
}

/** Match each letter at its next position, or with `skips` preferably at the next beginning of a word. */
function scatteredMatch(letters: string, text: string, lowerText: string, skips: boolean): FuzzyMatch | undefined {
  const positions: number[] = []
  let score = 0
  let from = 0
  for (const letter of letters) {
    const next = (skips ? wordStart(text, lowerText, letter, from) : undefined) ?? lowerText.indexOf(letter, from)
    if (next < 0) return undefined
    score += startsWord(text, next) ? 8 : next === from && positions.length ? 4 : -1
    positions.push(next)
    from = next + 1
  }
  return { score: score - text.length / 50, positions }
}

/** Return the next position of a letter that starts a word, or `from` itself if the letter is there. */
function wordStart(text: string, lowerText: string, letter: string, from: number): number | undefined {
  for (let at = lowerText.indexOf(letter, from); at >= 0; at = lowerText.indexOf(letter, at + 1)) if (startsWord(text, at) || at === from) return at
  return undefined
}

/** Return `length` numbers from `from` on. */
function consecutive(from: number, length: number): number[] {
  return Array.from({ length }, (_, n) => from + n)
}
