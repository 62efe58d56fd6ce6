/**
 * The player of a recorded session: one clock for its conversation, terminals and changes. The server returns the state
 * at a moment; while playing, the next moment is requested as soon as the last one is shown.
 */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { DiffChanged } from '../api/facts.ts'
import type { SessionEvent } from '../api/types/events.ts'
import type { TerminalPlace, Timeline } from '../api/types/timeline.ts'
import { timeAfterIdle, firstVisibleTime, nextMarker, previousMarker, untilLastOutput, clampTime } from './timeline.ts'

export const SPEEDS = [0.5, 1, 2, 4, 8, 16] as const
const EVENTS_BEFORE = 1000 // loaded before a moment to show it
const EVENTS_AFTER = 1000 // loaded in advance

/** Consecutive events, and the changes of the workspace before the first of them. */
interface EventRange {
  readonly from: number
  readonly to: number
  readonly events: readonly SessionEvent[]
  readonly changes: DiffChanged | undefined
}

/** The state and controls of one replay. */
export class Replay {
  timeline: Timeline | undefined = $state.raw()
  /** The current position of the player, in milliseconds since the epoch. */
  at = $state(0)
  playing = $state(false)
  speed: number = $state(1)
  skipIdle = $state(true)
  problem: string | undefined = $state()
  /** The state at the shown moment: the newest events up to it, the offset of each terminal, and the changes. */
  events: readonly SessionEvent[] = $state.raw([])
  terminals: readonly TerminalPlace[] = $state.raw([])
  changes: DiffChanged | undefined = $state.raw()

  readonly #sessionId: string
  #range: EventRange | undefined
  #shown = -1
  #catchingUp = false
  #closed = false
  #frame = 0

  constructor(sessionId: string) {
    this.#sessionId = sessionId
  }

  /** Load the timeline and go to a time, by default the first one with visible content. */
  async open(at?: number): Promise<void> {
    try {
      this.timeline = untilLastOutput(await rest.timeline(this.#sessionId))
      this.seek(at ?? firstVisibleTime(this.timeline))
    } catch (error) {
      this.#failed(error)
    }
  }

  close(): void {
    this.#closed = true
    this.pause()
  }

  /** Move to a time and show the state at it. */
  seek(at: number): void {
    if (!this.timeline) return
    this.at = clampTime(this.timeline, at)
    void this.#catchUp()
  }

  toggle(): void {
    if (this.playing) this.pause()
    else this.play()
  }

  play(): void {
    if (!this.timeline || this.playing) return
    if (this.at >= this.timeline.ends) this.seek(this.timeline.begins)
    this.playing = true
    let before = performance.now()
    const step = (now: number) => {
      if (!this.playing) return
      this.#advance((now - before) * this.speed)
      before = now
      this.#frame = requestAnimationFrame(step)
    }
    this.#frame = requestAnimationFrame(step)
  }

  pause(): void {
    this.playing = false
    cancelAnimationFrame(this.#frame)
  }

  toNextMarker(): void {
    const marker = this.timeline && nextMarker(this.timeline, this.at)
    if (marker) this.seek(marker.time)
  }

  toPreviousMarker(): void {
    const marker = this.timeline && previousMarker(this.timeline, this.at)
    if (marker) this.seek(marker.time)
  }

  /** Move the position forward, and skip idle time if that is on. Pause at the end. */
  #advance(milliseconds: number): void {
    if (!this.timeline) return
    const at = this.at + milliseconds
    this.seek(this.skipIdle ? timeAfterIdle(at, this.#eventTimes(this.timeline)) : at)
    if (this.at >= this.timeline.ends) this.pause()
  }

  /** Yield the times at which something happens, in any order. */
  *#eventTimes({ markers, terminals, head, ends }: Timeline): Iterable<number> {
    yield ends
    for (const { time } of markers) yield time
    for (const { points } of terminals) for (const [time] of points as [number, number][]) yield time
    const range = this.#range
    for (const { timestamp } of range?.events ?? []) yield Date.parse(timestamp)
    if (range && range.to < head && this.at >= timeOf(range.events.at(-1))) yield this.at + 1 // more events follow that are not loaded
  }

  /** Request one moment after the other until the current position is shown. */
  async #catchUp(): Promise<void> {
    if (this.#catchingUp) return
    this.#catchingUp = true
    try {
      while (this.#shown !== this.at && !this.#closed) await this.#show(this.at)
      this.problem = undefined
    } catch (error) {
      this.#failed(error)
    } finally {
      this.#catchingUp = false
    }
  }

  /** Request and show the state at a time. */
  async #show(at: number): Promise<void> {
    const { moment } = await rest.timeline(this.#sessionId, Math.floor(at))
    if (moment) {
      const range = await this.#rangeAround(moment.seq)
      this.events = range.events.filter(({ seq }) => seq <= moment.seq)
      this.changes = lastChanges(this.events) ?? range.changes
      this.terminals = moment.terminals
    }
    this.#shown = at
  }

  /** Return the loaded range of events if it contains a seq, else load another. */
  async #rangeAround(seq: number): Promise<EventRange> {
    const known = this.#range
    if (known && seq <= known.to && (known.from === 1 || seq >= known.from + EVENTS_BEFORE / 2)) return known
    const after = Math.max(0, seq - EVENTS_BEFORE)
    const [{ events }, before] = await Promise.all([
      rest.events(this.#sessionId, { after, limit: EVENTS_BEFORE + EVENTS_AFTER }),
      rest.events(this.#sessionId, { types: ['diff_changed'], before: after + 1, limit: 1, newest: true }),
    ])
    return (this.#range = { from: after + 1, to: events.at(-1)?.seq ?? seq, events, changes: lastChanges(before.events) })
  }

  /** Show an error of the server and pause; any other error is raised. */
  #failed(error: unknown): void {
    if (!(error instanceof ApiError)) throw error
    this.problem = error.message
    this.pause()
  }
}

function lastChanges(events: readonly SessionEvent[]): DiffChanged | undefined {
  return events.findLast(({ type }) => type === 'diff_changed')?.data as DiffChanged | undefined
}

function timeOf(event: SessionEvent | undefined): number {
  return event ? Date.parse(event.timestamp) : -Infinity
}
