/** Convert terminal output to plain text without control sequences; lines overwritten by carriage returns appear as they ended. */
// eslint-disable-next-line no-control-regex
const SEQUENCES = /\u001b(?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\[[0-?]*[ -/]*[@-~]|[PX^_][^\u001b]*\u001b\\|[ -/]*[0-~])/g

/** Return the end of terminal output as plain text. */
export function plainOutput(output: string, maxCharacters = 100_000): string {
  const text = output.slice(-maxCharacters).replace(SEQUENCES, '').replace(/\r+\n/g, '\n')
  return text.split('\n').map(finalText).join('\n').replace(/\s+$/, '')
}

/** Return a line after its carriage returns, where later text overwrites earlier text, and without other control characters. */
function finalText(line: string): string {
  const written = line.split('\r').filter(Boolean)
  return written.reduce((earlier, later) => later + earlier.slice(later.length), '').replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '')
}
