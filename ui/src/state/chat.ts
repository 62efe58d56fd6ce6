/** A conversation as the page shows it: what the events of one agent add up to, newest last. */
import type { SessionEvent } from '../api/types.ts'

export interface Option {
  optionId: string
  name: string
  kind: string
}

/** An agent's own description of something it does; only what is shown is named. */
export interface ToolCall {
  toolCallId: string
  title?: string
  kind?: string
  status?: string
  content?: unknown
  rawInput?: unknown
}

export type Entry = { key: number } & (
  | { kind: 'prompt'; promptId: string; text: string }
  | { kind: 'text'; text: string; thought: boolean; open: boolean; messageId: string | undefined }
  | { kind: 'tool'; call: ToolCall }
  | { kind: 'plan'; steps: { text: string; status: string }[] }
  | { kind: 'permission'; id: string; call: ToolCall; options: Option[]; status: string; optionId: string | undefined }
  | { kind: 'question'; id: string; message: string; schema: unknown; url: string | undefined; status: string }
  | { kind: 'note'; text: string; bad: boolean }
)

export interface Chat {
  readonly entries: readonly Entry[]
  /** The prompt the agent is working on. */
  readonly turn: string | undefined
  /** How often the queue has changed: who shows it asks for it again. */
  readonly queueChanges: number
}

export const EMPTY: Chat = { entries: [], turn: undefined, queueChanges: 0 }
const MOST = 200

export function fold(chat: Chat, event: SessionEvent): Chat {
  const next = apply(chat, event)
  return next.entries.length > MOST ? { ...next, entries: next.entries.slice(-MOST) } : next
}

function apply(chat: Chat, event: SessionEvent): Chat {
  const { data } = event
  switch (event.type) {
    case 'user_prompt':
      return add(chat, { key: event.seq, kind: 'prompt', promptId: text(data.promptId), text: text(data.text) })
    case 'agent_message':
    case 'agent_thought':
      return withText(chat, event)
    case 'agent_content':
      return note(chat, event, `[${text((data.content as { type?: unknown } | null)?.type) || 'something that is not text'}]`)
    case 'tool_call':
    case 'tool_call_update':
      return withTool(chat, event.seq, data as unknown as ToolCall)
    case 'plan':
      return withPlan(chat, event)
    case 'permission':
      return withPermission(chat, event)
    case 'question':
      return withQuestion(chat, event)
    case 'turn_start':
      return { ...chat, turn: text(data.promptId) }
    case 'turn_end':
      return withTurnEnd({ ...chat, turn: undefined }, event)
    case 'worker_failed':
      return note({ ...chat, turn: undefined }, event, text(data.error), true)
    case 'worker_exited':
    case 'worker_terminated':
      return note({ ...chat, turn: undefined }, event, 'The agent has ended.')
    case 'error':
      return note(chat, event, text(data.message), true)
    default:
      return event.type.startsWith('queue_') ? { ...chat, queueChanges: chat.queueChanges + 1 } : chat
  }
}

function withText(chat: Chat, { seq, type, data }: SessionEvent): Chat {
  const thought = type === 'agent_thought'
  const messageId = data.messageId === undefined ? undefined : text(data.messageId)
  const last = chat.entries.at(-1)
  if (last?.kind === 'text' && last.open && last.thought === thought && last.messageId === messageId)
    return put(chat, -1, { ...last, text: last.text + text(data.text), open: data.partial === true })
  if (!data.text) return chat // the end of a text that something else came after
  return add(chat, { key: seq, kind: 'text', text: text(data.text), thought, open: data.partial === true, messageId })
}

function withTool(chat: Chat, seq: number, news: ToolCall): Chat {
  const at = inTurn(chat, (entry) => entry.kind === 'tool' && entry.call.toolCallId === news.toolCallId)
  const before = chat.entries[at]
  if (before?.kind !== 'tool') return add(chat, { key: seq, kind: 'tool', call: news })
  const said = Object.fromEntries(Object.entries(news).filter(([, value]) => value != null))
  return put(chat, at, { ...before, call: { ...before.call, ...said } })
}

function withPlan(chat: Chat, { seq, data }: SessionEvent): Chat {
  const entries = Array.isArray(data.entries) ? (data.entries as { content?: unknown; status?: unknown }[]) : []
  const steps = entries.map((step) => ({ text: text(step?.content), status: text(step?.status) }))
  const at = inTurn(chat, (entry) => entry.kind === 'plan')
  const before = chat.entries[at]
  return before ? put(chat, at, { key: before.key, kind: 'plan', steps }) : add(chat, { key: seq, kind: 'plan', steps })
}

function withPermission(chat: Chat, { seq, data }: SessionEvent): Chat {
  const id = text(data.id)
  const at = chat.entries.findLastIndex((entry) => entry.kind === 'permission' && entry.id === id)
  const entry: Entry = {
    key: chat.entries[at]?.key ?? seq,
    kind: 'permission',
    id,
    call: data.toolCall as ToolCall,
    options: Array.isArray(data.options) ? (data.options as Option[]) : [],
    status: text(data.status),
    optionId: data.optionId === undefined ? undefined : text(data.optionId),
  }
  return at < 0 ? add(chat, entry) : put(chat, at, entry)
}

function withQuestion(chat: Chat, { seq, data }: SessionEvent): Chat {
  const id = text(data.id)
  const at = chat.entries.findLastIndex((entry) => entry.kind === 'question' && entry.id === id)
  const entry: Entry = {
    key: chat.entries[at]?.key ?? seq,
    kind: 'question',
    id,
    message: text(data.message),
    schema: data.schema,
    url: data.url === undefined ? undefined : text(data.url),
    status: text(data.status),
  }
  return at < 0 ? add(chat, entry) : put(chat, at, entry)
}

function withTurnEnd(chat: Chat, event: SessionEvent): Chat {
  const { stopReason, error } = event.data
  if (error) return note(chat, event, text(error), true)
  return stopReason === 'end_turn' ? chat : note(chat, event, `The turn ended: ${text(stopReason).replaceAll('_', ' ')}.`)
}

function note(chat: Chat, { seq }: SessionEvent, words: string, bad = false): Chat {
  return add(chat, { key: seq, kind: 'note', text: words, bad })
}

function add(chat: Chat, entry: Entry): Chat {
  return { ...chat, entries: [...chat.entries, entry] }
}

function put(chat: Chat, at: number, entry: Entry): Chat {
  return { ...chat, entries: chat.entries.with(at, entry) }
}

/** Ids of tool calls may come again in another turn. */
function inTurn(chat: Chat, wanted: (entry: Entry) => boolean): number {
  const start = chat.entries.findLastIndex((entry) => entry.kind === 'prompt')
  const at = chat.entries.findLastIndex(wanted)
  return at > start ? at : -1
}

/** Agents put anything anywhere. */
function text(value: unknown): string {
  if (typeof value === 'string') return value
  return value == null ? '' : JSON.stringify(value)
}
