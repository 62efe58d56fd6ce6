/** One xterm, tamed: draws bytes, reports keys and use, answers no questions, fits its box or another's size. */
import { FitAddon } from '@xterm/addon-fit'
import { UnicodeGraphemesAddon } from '@xterm/addon-unicode-graphemes'
import { type ILinkHandler, Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import type { Size } from '../api/frames.ts'
import type { Screen } from '../state/drawing.ts'
import { Clamp } from './clamp.ts'
import { swallowQueries, watchFocusMode } from './queries.ts'
import { defineSheet } from './sheet.ts'
import { themeFrom } from './theme.ts'

const FONT_SIZE = 13
const SMALLEST_FONT = 4
const STEP = 4096 // xterm lets the page breathe only between writes
const RESET = new TextEncoder().encode('\x1bc')

export class XtermScreen implements Screen {
  readonly #terminal: Terminal
  readonly #box: HTMLElement
  readonly #fit = new FitAddon()
  #clamp = new Clamp()

  constructor(box: HTMLElement, typed: (data: string) => void) {
    defineSheet()
    this.#box = box
    this.#terminal = new Terminal({
      allowProposedApi: true, // the unicode version is behind it
      cursorBlink: true,
      fontFamily: getComputedStyle(box).getPropertyValue('--font-mono'),
      fontSize: FONT_SIZE,
      scrollback: 10_000,
      theme: themeFrom(box),
      linkHandler: LINKS,
    })
    this.#terminal.loadAddon(this.#fit)
    this.#terminal.loadAddon(new UnicodeGraphemesAddon())
    swallowQueries(this.#terminal)
    const focusMode = watchFocusMode(this.#terminal)
    this.#terminal.onData((data) => {
      if (!focusMode.reporting) typed(data)
    })
    this.#terminal.open(box)
  }

  /** In the stream rather than at once: bytes written before are still on their way to the screen. */
  restore(history: Uint8Array<ArrayBuffer>, size: Size, drawn: () => void): void {
    this.#clamp = new Clamp()
    this.#terminal.write(RESET)
    this.resize(size)
    this.write(history, drawn)
  }

  write(bytes: Uint8Array<ArrayBuffer>, drawn: () => void): void {
    const harmless = this.#clamp.feed(bytes, this.#terminal.rows)
    let start = 0
    while (harmless.length - start > STEP) this.#terminal.write(harmless.subarray(start, (start += STEP)))
    this.#terminal.write(harmless.subarray(start), drawn)
  }

  /** Show this size whatever room there is: a smaller font where the box is too small for it. */
  resize({ cols, rows }: Size): void {
    const room = this.room()
    this.#terminal.resize(cols, rows)
    const scale = Math.min(1, room.cols / cols, room.rows / rows)
    this.#setFont(Math.max(SMALLEST_FONT, Math.floor(FONT_SIZE * scale * 2) / 2))
  }

  /** What would fit into the box at the normal font. */
  room(): Size {
    this.#setFont(FONT_SIZE)
    return this.#fit.proposeDimensions() ?? { cols: this.#terminal.cols, rows: this.#terminal.rows }
  }

  recolour(): void {
    this.#terminal.options.theme = themeFrom(this.#box)
  }

  focus(): void {
    this.#terminal.focus()
  }

  dispose(): void {
    this.#terminal.dispose()
  }

  #setFont(size: number): void {
    if (this.#terminal.options.fontSize !== size) this.#terminal.options.fontSize = size
  }
}

/** Links named by a program (OSC 8) open only as web pages, only when asked for, and without a way back to us. */
const LINKS: ILinkHandler = {
  activate(event, uri) {
    if (event.ctrlKey || event.metaKey) window.open(uri, '_blank', 'noopener,noreferrer')
  },
  allowNonHttpProtocols: false,
}
