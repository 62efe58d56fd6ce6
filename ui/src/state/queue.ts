/** The message queue of a session: the twin of `domain/queue.py`, with the names of R54. */
import type { SessionEvent } from '../api/types.ts'

export interface QueueItem {
  readonly id: string
  readonly message: string
  readonly image_ids: readonly string[]
  readonly queued_at: string
  readonly title: string | null
  readonly state: string
  readonly workerId: string | null
  readonly urgent: boolean
}

export interface Queue {
  readonly items: readonly QueueItem[]
  readonly paused: boolean
}

export const EMPTY: Queue = { items: [], paused: false }

export function foldQueue(queue: Queue, { type, data, timestamp }: SessionEvent): Queue {
  const id = String(data.id)
  switch (type) {
    case 'queue_added':
      return { ...queue, items: data.urgent === true ? [item(data, timestamp), ...queue.items] : [...queue.items, item(data, timestamp)] }
    case 'queue_edited':
      return change(queue, id, { message: String(data.message), state: 'queued' })
    case 'queue_moved':
      return { ...queue, items: moved(queue.items, id, String(data.direction)) }
    case 'queue_removed':
    case 'queue_sent':
      return { ...queue, items: queue.items.filter((each) => each.id !== id) }
    case 'queue_cleared':
      return EMPTY
    case 'queue_sending':
      return change(queue, id, { state: 'sending' })
    case 'queue_failed':
      return change(queue, id, { state: 'failed' })
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
    state: 'queued',
    workerId: typeof data.workerId === 'string' ? data.workerId : null,
    urgent: data.urgent === true,
  }
}

function change(queue: Queue, id: string, changes: Partial<QueueItem>): Queue {
  return { ...queue, items: queue.items.map((each) => (each.id === id ? { ...each, ...changes } : each)) }
}

function moved(items: readonly QueueItem[], id: string, direction: string): readonly QueueItem[] {
  const at = items.findIndex((each) => each.id === id)
  const one = items[at]
  if (!one) return items
  const rest = items.filter((each) => each.id !== id)
  if (direction === 'front') return [{ ...one, urgent: true, state: 'queued' }, ...rest]
  return rest.toSpliced(Math.min(Math.max(0, direction === 'up' ? at - 1 : at + 1), rest.length), 0, one)
}
