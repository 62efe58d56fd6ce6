/** What the settings call things. */

/** A command line as its words: parted by spaces, held together by quotes, nothing else has a meaning. */
export function splitWords(line: string): string[] {
  return Array.from(line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g), ([, double, single, plain]) => double ?? single ?? plain ?? '')
}
