/** Fold the events of a session into its message queue; the counterpart of `domain/queue.py`. The names of the fields are those of the REST API. */
import type { SessionEvent } from '../api/types/events.ts'

export interface QueueItem {
  readonly id: string
  readonly message: string
  readonly image_ids: readonly string[]
  readonly queued_at: string
  readonly title: string | null
  /** Whether the user set the title; then no title is generated. */
  readonly ownTitle: boolean
  readonly scheduled_time: string | null
  readonly state: string
  readonly workerId: string | null
  readonly urgent: boolean
}

export interface Queue {
  readonly items: readonly QueueItem[]
  readonly paused: boolean
}

export const EMPTY: Queue = { items: [], paused: false }

/** Return the message queue of a session after one more event; other events leave it unchanged. */
export function foldQueue(queue: Queue, { type, data, timestamp }: SessionEvent): Queue {
  const id = String(data.id)
  switch (type) {
    case 'queue_added':
      return { ...queue, items: data.urgent === true ? [item(data, timestamp), ...queue.items] : [...queue.items, item(data, timestamp)] }
    case 'queue_edited':
      return change(queue, id, (item) => edited(item, data))
    case 'queue_titled':
      return change(queue, id, (item) => (item.ownTitle ? item : { ...item, title: String(data.title) }))
    case 'queue_moved':
      return { ...queue, items: moved(queue.items, id, String(data.direction)) }
    case 'queue_removed':
    case 'queue_sent':
      return { ...queue, items: queue.items.filter((each) => each.id !== id) }
    case 'queue_cleared':
      return EMPTY
    case 'queue_sending':
      return change(queue, id, (item) => ({ ...item, state: 'sending' }))
    case 'queue_failed':
      return change(queue, id, (item) => ({ ...item, state: 'failed' }))
    case 'queue_paused':
      return { ...queue, paused: true }
    case 'queue_resumed':
      return { ...queue, paused: false }
    default:
      return queue
  }
}

function item(data: Record<string, unknown>, now: string): QueueItem {
  return {
    id: String(data.id),
    message: String(data.message),
    image_ids: Array.isArray(data.imageIds) ? (data.imageIds as string[]) : [],
    queued_at: now,
    title: typeof data.title === 'string' ? data.title : null,
    ownTitle: typeof data.title === 'string',
    scheduled_time: time(data.scheduledTime),
    state: 'queued',
    workerId: typeof data.workerId === 'string' ? data.workerId : null,
    urgent: data.urgent === true,
  }
}

/** Return a message after an edit: it is queued again, and a generated title is dropped with the text that it was made for. */
function edited(item: QueueItem, data: Record<string, unknown>): QueueItem {
  const message = String(data.message)
  const title = message === item.message || item.ownTitle ? item.title : null // it was generated from the old message
  return {
    ...item,
    message,
    state: 'queued',
    title,
    ...('title' in data && { title: data.title as string | null, ownTitle: data.title !== null }),
    ...('scheduledTime' in data && { scheduled_time: time(data.scheduledTime) }),
  }
}

function time(milliseconds: unknown): string | null {
  return typeof milliseconds === 'number' ? new Date(milliseconds).toISOString() : null
}

function change(queue: Queue, id: string, to: (item: QueueItem) => QueueItem): Queue {
  return { ...queue, items: queue.items.map((each) => (each.id === id ? to(each) : each)) }
}

/** Return the items after one was moved up or down, or to the front, where it becomes urgent. */
function moved(items: readonly QueueItem[], id: string, direction: string): readonly QueueItem[] {
  const at = items.findIndex((each) => each.id === id)
  const one = items[at]
  if (!one) return items
  const rest = items.filter((each) => each.id !== id)
  if (direction === 'front') return [{ ...one, urgent: true, state: 'queued' }, ...rest]
  return rest.toSpliced(Math.min(Math.max(0, direction === 'up' ? at - 1 : at + 1), rest.length), 0, one)
}
