/** Schedule work by animation frames. */

const DRAW_DELAY_MS = 50 // milliseconds in which a frame reaches the screen and pending key presses are handled

/** Run the work shortly after the current state of the page has been drawn. */
export function afterNextDraw(work: () => void): void {
  if (hasAnimationFrames()) requestAnimationFrame(() => setTimeout(work, DRAW_DELAY_MS)) // the frame is drawn right after its callbacks
  else setTimeout(work, DRAW_DELAY_MS)
}

/** Coalesces requests for work into one run per animation frame; in a hidden page, into a few runs per second. */
export class FrameThrottle {
  readonly #work: () => void
  #requested = false

  constructor(work: () => void) {
    this.#work = work
  }

  request(): void {
    if (this.#requested) return
    this.#requested = true
    const run = () => {
      this.#requested = false
      this.#work()
    }
    if (hasAnimationFrames()) requestAnimationFrame(run)
    else setTimeout(run, typeof document === 'undefined' ? 0 : 250)
  }
}

function hasAnimationFrames(): boolean {
  return typeof requestAnimationFrame === 'function' && !document.hidden
}
