/** Calculations on the time line of a replay: positions of marks, next and previous marks, terminal sizes and idle times. */
import type { Marker, TerminalTimeline, Timeline } from '../api/types/timeline.ts'

const IDLE_MS = 2000 // longer pauses without an event are skipped
const LEAD_MS = 400 // playing continues this long before the next event

export interface Mark {
  readonly marker: Marker
  /** The position on the time line, from 0 to 1. */
  readonly place: number
}

const RANK: Record<Marker['kind'], number> = { error: 0, permission: 1, question: 2, prompt: 3, tool: 4 }

/** Return the time line with its end moved to the last output of a terminal, which may come after the last event. */
export function untilLastOutput(timeline: Timeline): Timeline {
  const lastOutputs = timeline.terminals.map(({ points }) => (points.at(-1)?.[0] as number | undefined) ?? 0)
  return { ...timeline, ends: Math.max(timeline.ends, ...lastOutputs) }
}

/** Return the first time at which something is visible: a mark, or the first output of a terminal. If nothing is, return the start. */
export function firstVisibleTime({ begins, markers, terminals }: Timeline): number {
  const printed = terminals.flatMap(({ start, points }) => (points as [number, number][]).find(([, offset]) => offset > start)?.[0] ?? [])
  const first = Math.min(...markers.map(({ time }) => time), ...printed)
  return first === Infinity ? begins : first
}

/** Return the time limited to the time line. */
export function clampTime({ begins, ends }: Timeline, at: number): number {
  return Math.min(ends, Math.max(begins, at))
}

/** Return the position of a time on the time line, from 0 to 1. */
export function fractionOf({ begins, ends }: Timeline, time: number): number {
  return ends > begins ? Math.min(1, Math.max(0, (time - begins) / (ends - begins))) : 1
}

/** Return at most one mark for each of `room` positions: the most important one. */
export function marksOf(timeline: Timeline, room: number): Mark[] {
  const bySlot = new Map<number, Mark>()
  for (const marker of timeline.markers) {
    const place = fractionOf(timeline, marker.time)
    const slot = Math.round(place * room)
    const before = bySlot.get(slot)
    if (!before || RANK[marker.kind] < RANK[before.marker.kind]) bySlot.set(slot, { marker, place })
  }
  return [...bySlot.values()]
}

export function nextMarker({ markers }: Timeline, at: number): Marker | undefined {
  return markers.find(({ time }) => time > at)
}

export function previousMarker({ markers }: Timeline, at: number): Marker | undefined {
  return markers.findLast(({ time }) => time < at)
}

/** Return the time at which playing continues: `at`, or shortly before the next of `times` if that is far away. */
export function timeAfterIdle(at: number, times: Iterable<number>): number {
  let next = Infinity
  for (const time of times) if (time > at && time < next) next = time
  return next !== Infinity && next - at > IDLE_MS ? next - LEAD_MS : at
}

/** Return the size of a terminal at an offset of its output. */
export function sizeAt({ sizes }: TerminalTimeline, offset: number): { cols: number; rows: number } {
  const known = sizes as [number, number, number][]
  const [, cols, rows] = known.findLast(([from]) => from <= offset) ?? known[0] ?? [0, 80, 24]
  return { cols, rows }
}

const LINE_FEED = 0x0a
const ESCAPE = 0x1b

/** Return where the first line or control sequence begins that a cut at the start cannot have damaged, or -1. */
export function firstBoundary(bytes: Uint8Array): number {
  const at = bytes.findIndex((byte) => byte === LINE_FEED || byte === ESCAPE)
  return bytes[at] === LINE_FEED ? at + 1 : at
}

/** Format a duration such as "1:05" or "2:00:07". */
export function elapsed(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000))
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  return [...(hours ? [hours, pad(minutes)] : [minutes]), pad(rest)].join(':')
}

function pad(number: number): string {
  return String(number).padStart(2, '0')
}
