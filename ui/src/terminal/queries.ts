/**
 * Programs ask terminals questions, and xterm would type the answers into the shell, once per viewer and again
 * on every replay. The server's own emulator answers instead; here every question is swallowed.
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
  { final: 't' }, // window reports; what it could change we do not allow either
  { prefix: '?', final: 'u' }, // kitty keyboard
]
const DCS_QUERIES = [
  { intermediates: '$', final: 'q' }, // DECRQSS
  { intermediates: '+', final: 'q' }, // XTGETTCAP
]
const COLOUR_OSCS = [4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19] // set a colour, or with "?" ask for it
const FOCUS_MODE = 1004

export function swallowQueries(terminal: Terminal): IDisposable[] {
  const { parser } = terminal
  return [
    ...CSI_QUERIES.map((id) => parser.registerCsiHandler(id, () => true)),
    ...DCS_QUERIES.map((id) => parser.registerDcsHandler(id, () => true)),
    ...COLOUR_OSCS.map((id) => parser.registerOscHandler(id, (data) => data.includes('?'))),
  ]
}

/**
 * Setting the focus mode makes xterm report the focus at once, which on a replay is typing too. True while
 * that report is on its way: it comes out before control returns to the event loop.
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
