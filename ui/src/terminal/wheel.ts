/** How many lines a turn of the wheel is: as many as the browser would scroll a page by, with what is left over kept. */

type Turn = Pick<WheelEvent, 'deltaY' | 'deltaMode'>

export class Wheel {
  #left = 0 // of a line

  /** `height` is that of a line in pixels; `rows` are a page. */
  lines({ deltaY, deltaMode }: Turn, height: number, rows: number): number {
    const turned = deltaMode === 0 ? deltaY / (height || 1) : deltaMode === 1 ? deltaY : deltaY * rows
    if (Math.sign(turned) !== Math.sign(this.#left)) this.#left = 0
    this.#left += turned
    const whole = Math.trunc(this.#left)
    this.#left -= whole
    return whole
  }
}
