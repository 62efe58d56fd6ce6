/** What a terminal printed, as plain text: colours and movements left out, overwritten lines as they ended. */
// eslint-disable-next-line no-control-regex
const SEQUENCES = /\u001b(?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\[[0-?]*[ -/]*[@-~]|[PX^_][^\u001b]*\u001b\\|[ -/]*[0-~])/g

export function plainScreen(output: string, longest = 100_000): string {
  const text = output.slice(-longest).replace(SEQUENCES, '').replace(/\r+\n/g, '\n')
  return text.split('\n').map(settled).join('\n').replace(/\s+$/, '')
}

/** A carriage return writes over what stood there. */
function settled(line: string): string {
  const written = line.split('\r').filter(Boolean)
  return written.reduce((before, now) => now + before.slice(now.length), '').replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '')
}
