/** When to work, by the frames of the screen. */

const A_MOMENT = 50 // ms, in which a frame reaches the screen and a key the page

/** Does it a moment after what there is now has been drawn. */
export function onceDrawn(work: () => void): void {
  if (framesCome()) requestAnimationFrame(() => setTimeout(work, A_MOMENT)) // a frame is drawn right after its callbacks
  else setTimeout(work, A_MOMENT)
}

/** Work done once a frame, however often it is asked for; a page nobody sees does it a few times a second. */
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
