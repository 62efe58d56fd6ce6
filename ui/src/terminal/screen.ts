/** Wrap xterm as the screen of a terminal: draw output safely, report input, search, and fit the size of the box or of another viewer. */
import { FitAddon } from '@xterm/addon-fit'
import { SearchAddon } from '@xterm/addon-search'
import { UnicodeGraphemesAddon } from '@xterm/addon-unicode-graphemes'
import { Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import type { Size } from '../api/terminal-messages.ts'
import type { Screen } from '../state/output-renderer.ts'
import { NumberLimiter } from './number-limiter.ts'
import { watchClipboard } from './clipboard.ts'
import { drawWithGpu } from './gpu.ts'
import { namedLinks, textLinks, type LinkEvents } from './web-links.ts'
import { ignoreQueries, watchFocusMode } from './queries.ts'
import { defineSheet } from './style-sheet-element.ts'
import { matchColours, themeFrom } from './theme.ts'
import { WheelLines } from './wheel.ts'

const FONT_SIZE = 13
const SMALLEST_FONT = 7 // smaller text cannot be read; a larger screen is scrolled instead
const WRITE_BYTES = 4096 // for each write, because xterm yields to the page only between writes
const RESET = new TextEncoder().encode('\x1bc')

/** Callbacks of a screen. */
export interface ScreenEvents extends LinkEvents {
  onInput(data: string): void
  /** A program wants to copy a text to the clipboard. */
  onClipboardRequest(text: string): void
  /** A key was pressed; return true if it is not for the program. */
  onKey(event: KeyboardEvent): boolean
  onSearchResults(index: number, count: number): void
}

export interface ScreenOptions {
  /** Whether another viewer's size is scaled to fit the whole box, or only its width, with scrolling. */
  fits?: 'box' | 'width'
  /** Whether input is disabled, so that a phone shows no keyboard. */
  readOnly?: boolean
}

/** One xterm in a box of the page. */
export class XtermScreen implements Screen {
  readonly #terminal: Terminal
  readonly #box: HTMLElement
  readonly #fits: 'box' | 'width'
  readonly #fit = new FitAddon()
  readonly #search = new SearchAddon({ highlightLimit: 1000 })
  #limiter = new NumberLimiter()
  readonly #wheel = new WheelLines()
  #rows: number // the rows after all written output is drawn
  #disposed = false

  constructor(box: HTMLElement, events: ScreenEvents, { fits = 'box', readOnly = false }: ScreenOptions = {}) {
    defineSheet()
    this.#box = box
    this.#fits = fits
    this.#terminal = new Terminal({
      allowProposedApi: true, // needed for the unicode version and the marks of a search
      cursorBlink: true,
      disableStdin: readOnly,
      fontFamily: getComputedStyle(box).getPropertyValue('--font-mono'),
      fontSize: FONT_SIZE,
      scrollback: 10_000,
      theme: themeFrom(box),
      linkHandler: namedLinks(events),
      macOptionIsMeta: true,
      rightClickSelectsWord: false,
    })
    this.#rows = this.#terminal.rows
    for (const addon of [this.#fit, new UnicodeGraphemesAddon(), this.#search, textLinks(events)]) this.#terminal.loadAddon(addon)
    ignoreQueries(this.#terminal)
    watchClipboard(this.#terminal, (text) => events.onClipboardRequest(text))
    const focusMode = watchFocusMode(this.#terminal)
    this.#terminal.onData((data) => {
      if (!focusMode.reporting) events.onInput(data)
    })
    this.#terminal.attachCustomKeyEventHandler((event) => event.type !== 'keydown' || !events.onKey(event))
    this.#search.onDidChangeResults(({ resultIndex, resultCount }) => events.onSearchResults(resultIndex, resultCount))
    box.addEventListener('wheel', this.#handleWheel, { capture: true, passive: false })
    this.#terminal.open(box)
    void drawWithGpu(this.#terminal)
  }

  /** Whether the program gets the wheel: it tracks the mouse, or it uses the alternate screen, where xterm sends arrow keys. */
  get #isForProgram(): boolean {
    return this.#terminal.modes.mouseTrackingMode !== 'none' || this.#terminal.buffer.active.type === 'alternate'
  }

  /** Scroll by the lines that the wheel turned, instead of xterm, which scrolls by at most three lines. */
  readonly #handleWheel = (event: WheelEvent): void => {
    if (this.#isForProgram) return
    event.stopPropagation()
    const { rows, buffer } = this.#terminal
    const height = (this.#terminal.element?.querySelector('.xterm-screen')?.clientHeight ?? 0) / rows
    const before = buffer.active.viewportY
    this.#terminal.scrollLines(this.#wheel.lines(event, height, rows))
    if (buffer.active.viewportY !== before) event.preventDefault()
  }

  /** Reset the terminal and draw a history. The reset is part of the stream, because earlier output may still be in xterm's buffer. */
  restore(history: Uint8Array<ArrayBuffer>, size: Size, drawn: () => void): void {
    this.#limiter = new NumberLimiter()
    this.#terminal.write(RESET)
    this.resize(size)
    this.write(history, drawn)
  }

  /** Write output and call `drawn` when it is drawn; long output is split, so that the page stays responsive. */
  write(bytes: Uint8Array<ArrayBuffer>, drawn: () => void): void {
    const safe = this.#limiter.feed(bytes, this.#rows)
    let start = 0
    while (safe.length - start > WRITE_BYTES) this.#terminal.write(safe.subarray(start, (start += WRITE_BYTES)))
    this.#terminal.write(safe.subarray(start), drawn)
  }

  /** Change the size after all earlier output is drawn, because that was printed for the earlier size. */
  resize(size: Size): void {
    this.#rows = size.rows
    this.#afterEarlierWrites(() => this.#resize(size))
  }

  /** Set the size, with a smaller font if the box is too small. */
  #resize({ cols, rows }: Size): void {
    const room = this.room()
    this.#terminal.resize(cols, rows)
    const scale = Math.min(1, room.cols / cols, this.#fits === 'box' ? room.rows / rows : 1)
    this.#setFont(Math.max(SMALLEST_FONT, Math.floor(FONT_SIZE * scale * 2) / 2))
  }

  /** Set the font to its normal size, and return the size of the terminal that then fits into the box. */
  room(): Size {
    this.#setFont(FONT_SIZE)
    return this.#fit.proposeDimensions() ?? { cols: this.#terminal.cols, rows: this.#terminal.rows }
  }

  /** Scroll the box just far enough to show the cursor, if the screen is higher than the box. */
  showCursor(): void {
    this.#afterEarlierWrites(() => this.#showCursor())
  }

  #showCursor(): void {
    const screen = this.#terminal.element?.querySelector('.xterm-screen')?.getBoundingClientRect()
    if (!screen) return
    this.#terminal.scrollToBottom()
    const box = this.#box
    const line = screen.height / this.#terminal.rows
    const top = screen.top - box.getBoundingClientRect().top + box.scrollTop + this.#terminal.buffer.active.cursorY * line
    box.scrollTop = Math.min(top, Math.max(top + line - box.clientHeight, box.scrollTop))
  }

  /** Apply the colours of the current theme. */
  recolour(): void {
    this.#terminal.options.theme = themeFrom(this.#box)
  }

  focus(): void {
    this.#terminal.focus()
  }

  /** The modes that the program set: bracketed paste and application arrow keys. */
  get modes(): { bracketedPaste: boolean; applicationArrows: boolean } {
    const { bracketedPasteMode, applicationCursorKeysMode } = this.#terminal.modes
    return { bracketedPaste: bracketedPasteMode, applicationArrows: applicationCursorKeysMode }
  }

  /** Send a text as a paste, in brackets if the program supports that. */
  paste(text: string): void {
    this.#terminal.paste(text)
  }

  get selection(): string {
    return this.#terminal.getSelection()
  }

  /** Mark all matches and select the previous or next one; `still` keeps the current match if it still matches. */
  find(query: string, direction: 'before' | 'after', still = false): void {
    const decorations = matchColours(this.#box)
    if (direction === 'after') this.#search.findNext(query, { decorations, incremental: still })
    else this.#search.findPrevious(query, { decorations })
  }

  stopFinding(): void {
    this.#search.clearDecorations()
    this.#terminal.clearSelection()
  }

  dispose(): void {
    this.#disposed = true
    this.#box.removeEventListener('wheel', this.#handleWheel, { capture: true })
    this.#terminal.dispose()
  }

  /** Run an action after all earlier output and before all later output. */
  #afterEarlierWrites(act: () => void): void {
    this.#terminal.write('', () => this.#disposed || act())
  }

  /** Set the size of the font; xterm then measures its characters again. */
  #setFont(size: number): void {
    if (this.#terminal.options.fontSize !== size) this.#terminal.options.fontSize = size
  }
}
