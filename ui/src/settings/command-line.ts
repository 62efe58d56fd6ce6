/** Parse the command line of an agent in the settings. */

/** Split a command line at spaces, except within quotes; no other character is special. */
export function splitCommand(line: string): string[] {
  return Array.from(line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g), ([, double, single, plain]) => double ?? single ?? plain ?? '')
}
