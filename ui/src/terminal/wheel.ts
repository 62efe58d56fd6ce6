/** Convert turns of the mouse wheel into whole lines; fractions are kept for the next turn. */

type Turn = Pick<WheelEvent, 'deltaY' | 'deltaMode'>

/** The state of one wheel. */
export class WheelLines {
  #fraction = 0 // fraction of a line

  /** Return the lines to scroll; `height` is the height of a line in pixels, and `rows` is a page. */
  lines({ deltaY, deltaMode }: Turn, height: number, rows: number): number {
    const turned = deltaMode === 0 ? deltaY / (height || 1) : deltaMode === 1 ? deltaY : deltaY * rows
    if (Math.sign(turned) !== Math.sign(this.#fraction)) this.#fraction = 0
    this.#fraction += turned
    const whole = Math.trunc(this.#fraction)
    this.#fraction -= whole
    return whole
  }
}
