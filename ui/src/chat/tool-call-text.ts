/** Describe tool calls as plain text: the exact command, input, files and changes, which the title need not tell. */
import { deviceName } from '../parts/device-name.ts'
import { shellQuote } from '../parts/shell-quote.ts'
import type { ToolCall } from '../state/entries.ts'
import { endReasonText, isEndedByUser, isEndReason } from '../state/reasons.ts'

/** A change of one file. */
export interface Change {
  path: string
  oldText: string
  newText: string
}

/** One part of the content of a call, in the order of the agent. */
export type Part =
  | { kind: 'markdown'; text: string }
  | { kind: 'change'; change: Change }
  | { kind: 'terminal'; id: string }
  | { kind: 'image'; mimeType: string; data: string }
  | { kind: 'plain'; text: string }

const MARKS: Record<string, string> = { completed: '✓', failed: '✕', cancelled: '✕', in_progress: '◐' }
const NAMES: Record<string, string> = { read: 'Read', edit: 'Edit', delete: 'Delete', move: 'Move', search: 'Search', execute: 'Run', think: 'Think', fetch: 'Fetch', switch_mode: 'Mode' }

// Characters that change the text direction or are invisible. The user must see that they are there.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu

/** Return the symbol for the status of a tool call or step. */
export function statusSymbol(status: string | undefined): string {
  return MARKS[status ?? ''] ?? '○'
}

/** Return the display name of a call's kind, such as "Read" or "Run". */
export function kindName(call: ToolCall | undefined): string {
  return NAMES[asText(call?.kind)] ?? 'Tool'
}

/** Return the title of a call on one line, or its kind if it has no title. */
export function callTitle(call: ToolCall | undefined): string {
  return escapeInvisible(asText(call?.title)).replace(/\s+/g, ' ').trim() || asText(call?.kind) || 'A tool'
}

/** Return the title without the name of its kind, with which many titles begin. */
export function titleWithoutKind(call: ToolCall | undefined): string {
  const [name, title] = [kindName(call), callTitle(call)]
  return title.toLowerCase().startsWith(`${name.toLowerCase()} `) ? title.slice(name.length + 1) : title
}

/** Replace invisible characters by their code points, as in `⟨U+202E⟩`. */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE, (character) => `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`)
}

/** Return the exact command that a call runs, or undefined if it runs none. */
export function commandOf(call: ToolCall | undefined): string | undefined {
  const input = asObject(call?.rawInput)
  const { command, cmd, args } = input
  const program = command ?? cmd
  if (Array.isArray(program)) return escapeInvisible(program.map(quoteArgument).join(' '))
  if (typeof program !== 'string') return undefined
  return escapeInvisible(Array.isArray(args) ? [program, ...args.map(quoteArgument)].join(' ') : program)
}

/** Return the input of a call without its command, as JSON; empty if there is nothing else. */
export function inputOf(call: ToolCall | undefined): string {
  if (call?.rawInput === undefined || isEmpty(call.rawInput)) return ''
  if (typeof call.rawInput !== 'object') return escapeInvisible(asText(call.rawInput))
  const known = commandOf(call) === undefined ? [] : ['command', 'cmd', ...(Array.isArray(asObject(call.rawInput).args) ? ['args'] : [])]
  const rest = Object.fromEntries(Object.entries(call.rawInput as object).filter(([name]) => !known.includes(name)))
  return isEmpty(rest) ? '' : escapeInvisible(JSON.stringify(rest, null, 2))
}

/** Return the paths that a call lists, each once. */
export function pathsOf(call: ToolCall | undefined): string[] {
  const locations = Array.isArray(call?.locations) ? call.locations : []
  return [...new Set(locations.map((location) => escapeInvisible(asText(asObject(location).path))).filter(Boolean))]
}

/** Return a path relative to the workspace. A path outside of it, or with "..", is returned unchanged. */
export function pathWithin(path: string, workspace: string | undefined): string {
  const inside = workspace && path.startsWith(`${workspace}/`) && !path.split('/').includes('..')
  return inside ? path.slice(workspace.length + 1) : path
}

/** Return the content of a call as parts that the page can show. */
export function partsOf(call: ToolCall | undefined): Part[] {
  const content = Array.isArray(call?.content) ? call.content : []
  return content.map(asPart).filter((part) => part !== undefined)
}

/** Return one content block of a call as a part, or undefined if it is empty. */
function asPart(part: unknown): Part | undefined {
  const { type, content, path, oldText, newText, terminalId } = asObject(part)
  if (type === 'diff') return { kind: 'change', change: { path: escapeInvisible(asText(path)), oldText: asText(oldText), newText: asText(newText) } }
  if (type === 'terminal') return { kind: 'terminal', id: asText(terminalId) }
  if (type !== 'content') return part == null ? undefined : { kind: 'plain', text: JSON.stringify(part) }
  const block = asObject(content)
  if (block.type === 'text') return block.text ? { kind: 'markdown', text: asText(block.text) } : undefined
  if (block.type === 'image') return { kind: 'image', mimeType: asText(block.mimeType), data: asText(block.data) }
  return content == null ? undefined : { kind: 'plain', text: JSON.stringify(content, null, 2) }
}

/** Return a data address for an image, or undefined for formats that may contain scripts. */
export function imageAddress(mimeType: string, data: string): string | undefined {
  if (!/^image\/(png|jpeg|gif|webp)$/.test(mimeType) || !/^[A-Za-z0-9+/=\s]+$/.test(data)) return undefined
  return `data:${mimeType};base64,${data.replace(/\s+/g, '')}`
}

/** Return the value if it is an object, else an empty object. */
export function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value as object).length === 0)
}

/** Return the value as text: strings unchanged, null as '', anything else as JSON. */
export function asText(value: unknown): string {
  if (typeof value === 'string') return value
  return value == null ? '' : JSON.stringify(value)
}

/** Describe who answered a permission, or why it ended without an answer. */
export function answeredBy(by: string): string {
  if (isEndedByUser(by)) return 'because the agent was stopped'
  return isEndReason(by) ? `because ${endReasonText(by)}` : `by ${deviceName(by)}`
}

function quoteArgument(word: unknown): string {
  return shellQuote(asText(word))
}
