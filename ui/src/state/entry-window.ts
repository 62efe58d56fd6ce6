/**
 * The window of shown entries: at most 200 of the loaded entries are in the page, so that long conversations stay fast.
 * At the end, the window follows new entries; after scrolling up, it stays.
 */
import type { SessionEvent } from '../api/types/events.ts'
import { fold, isVisible, join, type Entries } from './entries.ts'

export interface EntryWindow {
  readonly entries: Entries
  /** All events from this seq on are loaded. */
  readonly from: number
  /** The shown entries are `entries.slice(start, end)`. */
  readonly start: number
  readonly end: number
}

export const MAX_SHOWN = 200
const STEP = 60 // entries by which the window moves at a time
const MAX_LOADED = 4000 // entries

export function emptyWindow(from: number): EntryWindow {
  return { entries: [], from, start: 0, end: 0 }
}

/** Return the shown entries without empty texts. */
export function shownEntries({ entries, start, end }: EntryWindow): Entries {
  return entries.slice(start, end).filter(isVisible)
}

/** Add new events at the end. `following` moves the window to the new end. */
export function append(window: EntryWindow, events: readonly SessionEvent[], following: boolean): EntryWindow {
  const entries = events.reduce(fold, window.entries)
  if (entries === window.entries) return window
  if (following) return dropOldest(atEnd({ ...window, entries }))
  const wasAtEnd = window.end === window.entries.length
  const end = wasAtEnd ? Math.min(entries.length, window.start + MAX_SHOWN) : window.end
  return { ...window, entries, end }
}

/** Add older events at the beginning; the shown entries stay the same. */
export function prepend(window: EntryWindow, events: readonly SessionEvent[], from: number): EntryWindow {
  const entries = join(events.reduce(fold, [] as Entries), window.entries)
  const more = entries.length - window.entries.length
  return { entries, from, start: window.start + more, end: window.end + more }
}

/** Move the window towards older entries. */
export function earlier(window: EntryWindow): EntryWindow {
  const start = Math.max(0, window.start - STEP)
  return { ...window, start, end: Math.min(window.end, start + MAX_SHOWN) }
}

/** Move the window towards newer entries. */
export function later(window: EntryWindow): EntryWindow {
  const end = Math.min(window.entries.length, window.end + STEP)
  return { ...window, end, start: Math.max(window.start, end - MAX_SHOWN) }
}

/** Move the window to the newest entries; it contains `room` entries. */
export function atEnd(window: EntryWindow, room = MAX_SHOWN): EntryWindow {
  const end = window.entries.length
  return { ...window, end, start: Math.max(0, end - room) }
}

/** Move the window so that it contains the entry at index `place`. */
export function around(window: EntryWindow, place: number): EntryWindow {
  if (place >= window.start && place < window.end) return window
  const start = Math.max(0, Math.min(place - MAX_SHOWN / 2, window.entries.length - MAX_SHOWN))
  return { ...window, start, end: Math.min(window.entries.length, start + MAX_SHOWN) }
}

/** Return whether there are older entries, loaded or not. */
export function hasEarlier(window: EntryWindow): boolean {
  return window.start > 0 || window.from > 1
}

/** Drop the oldest entries if there are too many. The cut is before a prompt, because later events never change entries before a prompt. */
function dropOldest(window: EntryWindow): EntryWindow {
  const { entries } = window
  if (entries.length <= MAX_LOADED) return window
  const cut = entries.findIndex((entry, n) => n >= entries.length - MAX_LOADED / 2 && entry.kind === 'prompt')
  const first = entries[cut]
  if (!first || cut > window.start) return window
  return { entries: entries.slice(cut), from: first.key, start: window.start - cut, end: window.end - cut }
}
