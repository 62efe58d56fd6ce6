/**
 * Which entries the page holds (R9): all that were loaded up to the newest are known, at most 200 of them are shown.
 * Who reads the end follows it; who has scrolled up stays where they are.
 */
import type { SessionEvent } from '../api/types/events.ts'
import { fold, isVisible, join, type Entries } from './chat.ts'

export interface ChatWindow {
  readonly entries: Entries
  /** Everything from this seq on is known. */
  readonly from: number
  /** The shown ones are `entries.slice(start, end)`. */
  readonly start: number
  readonly end: number
}

export const SHOWN = 200
const STEP = 60 // how many come in, and leave on the other side, at a time
const KEPT = 4000

export function emptyWindow(from: number): ChatWindow {
  return { entries: [], from, start: 0, end: 0 }
}

export function shown({ entries, start, end }: ChatWindow): Entries {
  return entries.slice(start, end).filter(isVisible)
}

/** What happened now. `following`: the reader looks at the end and wants to go on doing so. */
export function append(window: ChatWindow, events: readonly SessionEvent[], following: boolean): ChatWindow {
  const entries = events.reduce(fold, window.entries)
  if (entries === window.entries) return window
  if (following) return forgetful(atEnd({ ...window, entries }))
  const wasAtEnd = window.end === window.entries.length
  const end = wasAtEnd ? Math.min(entries.length, window.start + SHOWN) : window.end
  return { ...window, entries, end }
}

/** What happened before all that is known; what is shown stays the same. */
export function prepend(window: ChatWindow, events: readonly SessionEvent[], from: number): ChatWindow {
  const entries = join(events.reduce(fold, [] as Entries), window.entries)
  const more = entries.length - window.entries.length
  return { entries, from, start: window.start + more, end: window.end + more }
}

export function earlier(window: ChatWindow): ChatWindow {
  const start = Math.max(0, window.start - STEP)
  return { ...window, start, end: Math.min(window.end, start + SHOWN) }
}

export function later(window: ChatWindow): ChatWindow {
  const end = Math.min(window.entries.length, window.end + STEP)
  return { ...window, end, start: Math.max(window.start, end - SHOWN) }
}

export function atEnd(window: ChatWindow, room = SHOWN): ChatWindow {
  const end = window.entries.length
  return { ...window, end, start: Math.max(0, end - room) }
}

/** So that the entry at a place is shown, with what is round it. */
export function around(window: ChatWindow, place: number): ChatWindow {
  if (place >= window.start && place < window.end) return window
  const start = Math.max(0, Math.min(place - SHOWN / 2, window.entries.length - SHOWN))
  return { ...window, start, end: Math.min(window.entries.length, start + SHOWN) }
}

export function hasEarlier(window: ChatWindow): boolean {
  return window.start > 0 || window.from > 1
}

/** Only before a prompt, as nothing behind it changes what is forgotten. */
function forgetful(window: ChatWindow): ChatWindow {
  const { entries } = window
  if (entries.length <= KEPT) return window
  const cut = entries.findIndex((entry, n) => n >= entries.length - KEPT / 2 && entry.kind === 'prompt')
  const first = entries[cut]
  if (!first || cut > window.start) return window
  return { entries: entries.slice(cut), from: first.key, start: window.start - cut, end: window.end - cut }
}
