/** Schedule work by animation frames. */

const A_MOMENT = 50 // milliseconds in which a frame reaches the screen and pending key presses are handled

/** Run the work shortly after the current state of the page has been drawn. */
export function onceDrawn(work: () => void): void {
  if (framesCome()) requestAnimationFrame(() => setTimeout(work, A_MOMENT)) // the frame is drawn right after its callbacks
  else setTimeout(work, A_MOMENT)
}

/** Coalesces requests for work into one run per animation frame; in a hidden page, into a few runs per second. */
export class EachFrame {
  readonly #work: () => void
  #asked = false

  constructor(work: () => void) {
    this.#work = work
  }

  ask(): void {
    if (this.#asked) return
    this.#asked = true
    const run = () => {
      this.#asked = false
      this.#work()
    }
    if (framesCome()) requestAnimationFrame(run)
    else setTimeout(run, typeof document === 'undefined' ? 0 : 250)
  }
}

function framesCome(): boolean {
  return typeof requestAnimationFrame === 'function' && !document.hidden
}
