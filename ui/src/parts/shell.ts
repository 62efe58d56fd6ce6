/** A word as a shell reads it back: quoted where it would not be one word, or mean something else. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
