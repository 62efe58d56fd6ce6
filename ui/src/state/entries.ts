/**
 * Fold the events of one agent into the entries of its conversation, oldest first. Parts of the log can be folded
 * separately and joined; the result does not depend on where the log was cut.
 */
import type { SessionEvent } from '../api/types/events.ts'
import { refusalText, stopReasonText } from './reasons.ts'

export interface Option {
  optionId: string
  name: string
  kind: string
}

/** A tool call as the agent reports it; only the fields that the page shows. */
export interface ToolCall {
  toolCallId: string
  title?: string
  kind?: string
  status?: string
  content?: unknown
  rawInput?: unknown
  locations?: unknown
  _meta?: unknown
}

export interface Step {
  text: string
  status: string
}

/** One entry of a conversation; `key` and `at` are the seq and time of its first event. */
export type Entry = { key: number; at: string } & (
  | { kind: 'prompt'; promptId: string; text: string; imageIds: readonly string[]; sender: string | undefined }
  | { kind: 'text'; text: string; thought: boolean; open: boolean; messageId: string | undefined }
  | { kind: 'content'; content: unknown }
  | { kind: 'tool'; call: ToolCall; output: string }
  | { kind: 'plan'; steps: readonly Step[] }
  | { kind: 'permission'; id: string; call: ToolCall; options: readonly Option[]; status: string; optionId: string | undefined; by: string | undefined }
  | { kind: 'question'; id: string; message: string; schema: unknown; url: string | undefined; status: string; answer: unknown }
  | { kind: 'note'; text: string; bad: boolean }
)
export type EntryOf<Kind extends Entry['kind']> = Extract<Entry, { kind: Kind }>

export type Entries = readonly Entry[]

const MAX_OUTPUT_CHARACTERS = 200_000 // of terminal output in an entry; the beginning is cut off

/** Return the entries after one more event. */
export function fold(entries: Entries, event: SessionEvent): Entries {
  const { data } = event
  switch (event.type) {
    case 'user_prompt':
      return [...entries, promptEntry(event)]
    case 'agent_message':
    case 'agent_thought':
      return withText(entries, event)
    case 'agent_content':
      return [...entries, { ...entryBase(event), kind: 'content', content: data.content }]
    case 'tool_call':
    case 'tool_call_update':
      return merge(entries, { ...entryBase(event), kind: 'tool', call: data as unknown as ToolCall, output: terminalOutput(data) })
    case 'plan':
      return merge(entries, { ...entryBase(event), kind: 'plan', steps: stepsOf(data.entries) })
    case 'permission':
      return merge(entries, permissionEntry(event))
    case 'question':
      return merge(entries, questionEntry(event))
    case 'turn_end':
      return withTurnEnd(entries, event)
    case 'worker_failed':
      return note(entries, event, text(data.error), true)
    case 'worker_exited':
    case 'worker_terminated':
      return note(entries, event, 'The agent has stopped.')
    case 'conversation_reset':
      return note(entries, event, 'The agent started a new conversation and does not know the earlier messages.')
    case 'sandbox_refusal':
      return note(entries, event, `The sandbox: ${refusalText(data)}.`)
    case 'error':
      return note(entries, event, text(data.message), true)
    default:
      return entries
  }
}

/** Return whether an entry is shown; empty texts are not. */
export function isVisible(entry: Entry): boolean {
  return entry.kind !== 'text' || entry.text !== ''
}

/** Join the entries of two consecutive parts of the log. */
export function join(older: Entries, newer: Entries): Entries {
  if (!older.length) return newer
  return newer.reduce((joined, entry) => {
    if (entry.kind === 'text') return appendText(joined, entry)
    if (entry.kind === 'note') return appendNote(joined, entry)
    return 'call' in entry || entry.kind === 'plan' || entry.kind === 'question' ? merge(joined, entry) : [...joined, entry]
  }, older)
}

/** Add the text of a message or thought. */
function withText(entries: Entries, event: SessionEvent): Entries {
  const { data } = event
  const content = text(data.text)
  const messageId = data.messageId == null ? undefined : text(data.messageId)
  const piece: EntryOf<'text'> = { ...entryBase(event), kind: 'text', text: content, thought: event.type === 'agent_thought', open: data.partial === true, messageId }
  return appendText(entries, piece)
}

/** Append a piece to an open text, or as a new entry. An empty entry marks the end of a text in an earlier part of the log; it is invisible and needed by `join`. */
function appendText(entries: Entries, piece: EntryOf<'text'>): Entries {
  const last = entries.at(-1)
  if (last?.kind === 'text' && last.open && last.thought === piece.thought && last.messageId === piece.messageId)
    return entries.with(-1, { ...last, text: last.text + piece.text, open: piece.open })
  return [...entries, piece]
}

/** Update the existing entry of a call, plan, permission or question, or append a new entry. */
function merge(entries: Entries, update: EntryOf<'tool' | 'plan' | 'permission' | 'question'>): Entries {
  const at = indexOfSame(entries, update)
  const before = entries[at]
  if (!before) return [...entries, update]
  if (before.kind !== 'tool' || update.kind !== 'tool') return entries.with(at, { ...update, key: before.key, at: before.at })
  const output = (before.output + update.output).slice(-MAX_OUTPUT_CHARACTERS)
  return entries.with(at, { ...before, call: mergedCall(before.call, update.call), output })
}

/** Return the call with the fields of the update; null and absent fields stay unchanged. */
function mergedCall(call: ToolCall, update: ToolCall): ToolCall {
  return { ...call, ...(Object.fromEntries(Object.entries(update).filter(([, value]) => value != null)) as Partial<ToolCall>) }
}

/** Return the index of the entry that an update belongs to, or -1. Ids of tool calls are unique in a turn, each turn has one plan, and ids of permissions and questions are always unique. */
function indexOfSame(entries: Entries, update: Entry): number {
  for (let at = entries.length - 1; at >= 0; at--) {
    const entry = entries[at]!
    if (entry.kind === 'prompt' && (update.kind === 'tool' || update.kind === 'plan')) return -1
    if (entry.kind === update.kind && identity(entry) === identity(update)) return at
  }
  return -1
}

/** Return the id by which an update finds its entry. */
function identity(entry: Entry): string {
  if (entry.kind === 'tool') return entry.call.toolCallId
  return entry.kind === 'permission' || entry.kind === 'question' ? entry.id : ''
}

function promptEntry(event: SessionEvent): EntryOf<'prompt'> {
  const { text: content, promptId, imageIds, sender } = event.data
  const images = Array.isArray(imageIds) ? imageIds.map(text) : []
  return { ...entryBase(event), kind: 'prompt', promptId: text(promptId), text: text(content), imageIds: images, sender: sender == null ? undefined : text(sender) }
}

function permissionEntry(event: SessionEvent): EntryOf<'permission'> {
  const { id, toolCall, options, status, optionId, by } = event.data
  return {
    ...entryBase(event),
    kind: 'permission',
    id: text(id),
    call: toolCall as ToolCall,
    options: Array.isArray(options) ? (options as Option[]) : [],
    status: text(status),
    optionId: optionId == null ? undefined : text(optionId),
    by: by == null ? undefined : text(by),
  }
}

function questionEntry(event: SessionEvent): EntryOf<'question'> {
  const { id, message, schema, url, status, answer } = event.data
  return { ...entryBase(event), kind: 'question', id: text(id), message: text(message), schema, url: url == null ? undefined : text(url), status: text(status), answer }
}

/** Return the steps of a plan event. */
export function stepsOf(entries: unknown): Step[] {
  const steps = Array.isArray(entries) ? (entries as ({ content?: unknown; status?: unknown } | null)[]) : []
  return steps.map((step) => ({ text: text(step?.content), status: text(step?.status) }))
}

/** Return terminal output from `_meta`, where agents with their own terminals report it. */
function terminalOutput(data: Record<string, unknown>): string {
  const meta = data._meta as { terminal_output_delta?: { data?: unknown }; terminal_output?: { data?: unknown } } | null | undefined
  const content = meta?.terminal_output_delta?.data ?? meta?.terminal_output?.data
  return typeof content === 'string' ? content : ''
}

/** Add a note unless the turn ended normally. */
function withTurnEnd(entries: Entries, event: SessionEvent): Entries {
  const { stopReason, error } = event.data
  if (error) return note(entries, event, text(error), true)
  return stopReason === 'end_turn' ? entries : note(entries, event, stopReasonText(text(stopReason)))
}

/** Append a note, a short message about what happened; `bad` marks a failure. */
function note(entries: Entries, event: SessionEvent, message: string, bad = false): Entries {
  return appendNote(entries, { ...entryBase(event), kind: 'note', text: message, bad })
}

/** Append a note unless the last entry is the same note: one failure often ends both a turn and its agent. */
function appendNote(entries: Entries, note: EntryOf<'note'>): Entries {
  const last = entries.at(-1)
  const isSame = last?.kind === 'note' && last.bad === note.bad && last.text === note.text
  return isSame ? entries : [...entries, note]
}

/** Return the fields that all kinds of entries have. */
function entryBase(event: SessionEvent): { key: number; at: string } {
  return { key: event.seq, at: event.timestamp }
}

/** Return a value as text. Agents may send values of any type in any field. */
function text(value: unknown): string {
  if (typeof value === 'string') return value
  return value == null ? '' : JSON.stringify(value)
}
