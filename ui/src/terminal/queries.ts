/**
 * Suppress xterm's replies to queries of programs. xterm would send its replies as input, once per viewer and again on
 * each replay. The emulator of the server replies instead.
 */
import type { IDisposable, Terminal } from '@xterm/xterm'

const CSI_QUERIES = [
  { final: 'c' }, // DA1
  { prefix: '>', final: 'c' }, // DA2
  { prefix: '=', final: 'c' }, // DA3
  { final: 'n' }, // DSR, CPR
  { prefix: '?', final: 'n' },
  { intermediates: '$', final: 'p' }, // DECRQM
  { prefix: '?', intermediates: '$', final: 'p' },
  { prefix: '>', final: 'q' }, // XTVERSION
  { final: 'x' }, // DECREQTPARM
  { intermediates: '*', final: 'y' }, // DECRQCRA
  { final: 't' }, // window reports and window changes, which are not allowed either
  { prefix: '?', final: 'u' }, // kitty keyboard
]
const DCS_QUERIES = [
  { intermediates: '$', final: 'q' }, // DECRQSS
  { intermediates: '+', final: 'q' }, // XTGETTCAP
]
const COLOUR_OSCS = [4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19] // set a colour, or query it with "?"
const FOCUS_MODE = 1004

/** Register handlers that consume all queries. */
export function ignoreQueries(terminal: Terminal): IDisposable[] {
  const { parser } = terminal
  return [
    ...CSI_QUERIES.map((id) => parser.registerCsiHandler(id, () => true)),
    ...DCS_QUERIES.map((id) => parser.registerDcsHandler(id, () => true)),
    ...COLOUR_OSCS.map((id) => parser.registerOscHandler(id, (data) => data.includes('?'))),
  ]
}

/**
 * Detect the focus report that xterm sends immediately when a program turns on the focus mode. On a replay this report
 * would count as input. `reporting` is true until control returns to the event loop, which is after the report.
 */
export function watchFocusMode(terminal: Terminal): { reporting: boolean } & IDisposable {
  const watch = {
    reporting: false,
    dispose: () => handler.dispose(),
  }
  const handler = terminal.parser.registerCsiHandler({ prefix: '?', final: 'h' }, (params) => {
    if (params.includes(FOCUS_MODE)) {
      watch.reporting = true
      queueMicrotask(() => (watch.reporting = false))
    }
    return false
  })
  return watch
}
