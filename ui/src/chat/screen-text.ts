/** Convert terminal output to plain text without control sequences; lines overwritten by carriage returns appear as they ended. */
// eslint-disable-next-line no-control-regex
const SEQUENCES = /\u001b(?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\[[0-?]*[ -/]*[@-~]|[PX^_][^\u001b]*\u001b\\|[ -/]*[0-~])/g

export function plainScreen(output: string, longest = 100_000): string {
  const text = output.slice(-longest).replace(SEQUENCES, '').replace(/\r+\n/g, '\n')
  return text.split('\n').map(settled).join('\n').replace(/\s+$/, '')
}

/** Return a line after its carriage returns: later text overwrites earlier text. */
function settled(line: string): string {
  const written = line.split('\r').filter(Boolean)
  return written.reduce((before, now) => now + before.slice(now.length), '').replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '')
}
