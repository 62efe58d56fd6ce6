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
    if (typeof requestAnimationFrame === 'function' && !document.hidden) requestAnimationFrame(run)
    else setTimeout(run, typeof document === 'undefined' ? 0 : 250)
  }
}
