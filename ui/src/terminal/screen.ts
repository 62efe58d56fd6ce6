/** One xterm, tamed: draws bytes, reports keys and use, answers no questions, fits its box or another's size. */
import { FitAddon } from '@xterm/addon-fit'
import { SearchAddon } from '@xterm/addon-search'
import { UnicodeGraphemesAddon } from '@xterm/addon-unicode-graphemes'
import { Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import type { Size } from '../api/frames.ts'
import type { Screen } from '../state/drawing.ts'
import { Clamp } from './clamp.ts'
import { watchClipboard } from './clipboard.ts'
import { drawWithGpu } from './gpu.ts'
import { namedLinks, textLinks, type LinkWatcher } from './links.ts'
import { swallowQueries, watchFocusMode } from './queries.ts'
import { defineSheet } from './sheet.ts'
import { foundColours, themeFrom } from './theme.ts'
import { Wheel } from './wheel.ts'

const FONT_SIZE = 13
const SMALLEST_FONT = 7 // smaller cannot be read; what does not fit then is scrolled to
const STEP = 4096 // xterm lets the page breathe only between writes
const RESET = new TextEncoder().encode('\x1bc')

/** What a screen tells who put it up. */
export interface Watcher extends LinkWatcher {
  typed(data: string): void
  /** A program wants this on the clipboard. */
  offered(text: string): void
  /** Keys were pressed; true when they are not for the program. */
  pressed(event: KeyboardEvent): boolean
  found(place: number, count: number): void
}

export interface Manner {
  /** What a size that is not its own has to fit into; what is too high for a width is scrolled to. */
  fits?: 'box' | 'width'
  /** Nobody types here: a phone that is tapped shows no keyboard. */
  readOnly?: boolean
}

export class XtermScreen implements Screen {
  readonly #terminal: Terminal
  readonly #box: HTMLElement
  readonly #fits: 'box' | 'width'
  readonly #fit = new FitAddon()
  readonly #search = new SearchAddon({ highlightLimit: 1000 })
  #clamp = new Clamp()
  readonly #wheel = new Wheel()
  #rows: number // once all that was written is drawn
  #gone = false

  constructor(box: HTMLElement, watcher: Watcher, { fits = 'box', readOnly = false }: Manner = {}) {
    defineSheet()
    this.#box = box
    this.#fits = fits
    this.#terminal = new Terminal({
      allowProposedApi: true, // the unicode version and the marks of a search are behind it
      cursorBlink: true,
      disableStdin: readOnly,
      fontFamily: getComputedStyle(box).getPropertyValue('--font-mono'),
      fontSize: FONT_SIZE,
      scrollback: 10_000,
      theme: themeFrom(box),
      linkHandler: namedLinks(watcher),
      macOptionIsMeta: true,
      rightClickSelectsWord: false,
    })
    this.#rows = this.#terminal.rows
    for (const addon of [this.#fit, new UnicodeGraphemesAddon(), this.#search, textLinks(watcher)]) this.#terminal.loadAddon(addon)
    swallowQueries(this.#terminal)
    watchClipboard(this.#terminal, (text) => watcher.offered(text))
    const focusMode = watchFocusMode(this.#terminal)
    this.#terminal.onData((data) => {
      if (!focusMode.reporting) watcher.typed(data)
    })
    this.#terminal.attachCustomKeyEventHandler((event) => event.type !== 'keydown' || !watcher.pressed(event))
    this.#search.onDidChangeResults(({ resultIndex, resultCount }) => watcher.found(resultIndex, resultCount))
    box.addEventListener('wheel', this.#turned, { capture: true, passive: false })
    this.#terminal.open(box)
    void drawWithGpu(this.#terminal)
  }

  /** Whether the wheel is for the program: it asked for the mouse, or has the whole screen, where xterm types arrows for it. */
  get #isForProgram(): boolean {
    return this.#terminal.modes.mouseTrackingMode !== 'none' || this.#terminal.buffer.active.type === 'alternate'
  }

  /** Scrolls by as many lines as the wheel turned, before xterm hears of it, which scrolls by three at most. */
  readonly #turned = (event: WheelEvent): void => {
    if (this.#isForProgram) return
    event.stopPropagation()
    const { rows, buffer } = this.#terminal
    const height = (this.#terminal.element?.querySelector('.xterm-screen')?.clientHeight ?? 0) / rows
    const before = buffer.active.viewportY
    this.#terminal.scrollLines(this.#wheel.lines(event, height, rows))
    if (buffer.active.viewportY !== before) event.preventDefault()
  }

  /** In the stream rather than at once: bytes written before are still on their way to the screen. */
  restore(history: Uint8Array<ArrayBuffer>, size: Size, drawn: () => void): void {
    this.#clamp = new Clamp()
    this.#terminal.write(RESET)
    this.resize(size)
    this.write(history, drawn)
  }

  write(bytes: Uint8Array<ArrayBuffer>, drawn: () => void): void {
    const harmless = this.#clamp.feed(bytes, this.#rows)
    let start = 0
    while (harmless.length - start > STEP) this.#terminal.write(harmless.subarray(start, (start += STEP)))
    this.#terminal.write(harmless.subarray(start), drawn)
  }

  /** Takes its turn among the bytes: those written before were printed for the size before. */
  resize(size: Size): void {
    this.#rows = size.rows
    this.#inTurn(() => this.#resize(size))
  }

  /** Show this size whatever room there is: a smaller font where the box is too small for it. */
  #resize({ cols, rows }: Size): void {
    const room = this.room()
    this.#terminal.resize(cols, rows)
    const scale = Math.min(1, room.cols / cols, this.#fits === 'box' ? room.rows / rows : 1)
    this.#setFont(Math.max(SMALLEST_FONT, Math.floor(FONT_SIZE * scale * 2) / 2))
  }

  /** What would fit into the box at the normal font. */
  room(): Size {
    this.#setFont(FONT_SIZE)
    return this.#fit.proposeDimensions() ?? { cols: this.#terminal.cols, rows: this.#terminal.rows }
  }

  /** Scrolls the box, where the screen is higher, by no more than it takes. */
  showCursor(): void {
    this.#inTurn(() => this.#showCursor())
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

  recolour(): void {
    this.#terminal.options.theme = themeFrom(this.#box)
  }

  focus(): void {
    this.#terminal.focus()
  }

  /** Whether the program wants a paste in brackets, and arrows of its own. */
  get modes(): { bracketedPaste: boolean; applicationArrows: boolean } {
    const { bracketedPasteMode, applicationCursorKeysMode } = this.#terminal.modes
    return { bracketedPaste: bracketedPasteMode, applicationArrows: applicationCursorKeysMode }
  }

  /** Types a text as one piece where the program knows of that. */
  paste(text: string): void {
    this.#terminal.paste(text)
  }

  get selection(): string {
    return this.#terminal.getSelection()
  }

  /** Marks every place with these words and goes to the one before the last, or after it. */
  find(words: string, where: 'before' | 'after', still = false): void {
    const decorations = foundColours(this.#box)
    if (where === 'after') this.#search.findNext(words, { decorations, incremental: still })
    else this.#search.findPrevious(words, { decorations })
  }

  stopFinding(): void {
    this.#search.clearDecorations()
    this.#terminal.clearSelection()
  }

  dispose(): void {
    this.#gone = true
    this.#box.removeEventListener('wheel', this.#turned, { capture: true })
    this.#terminal.dispose()
  }

  /** After everything that was written before, and before everything that is written after. */
  #inTurn(act: () => void): void {
    this.#terminal.write('', () => this.#gone || act())
  }

  #setFont(size: number): void {
    if (this.#terminal.options.fontSize !== size) this.#terminal.options.fontSize = size
  }
}
