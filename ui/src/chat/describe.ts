/** What a tool call is about, in plain text: exactly what would be done, not what its title says of it. */
import type { ToolCall } from '../state/chat.ts'

const MARKS: Record<string, string> = { completed: '✓', failed: '✕', cancelled: '✕', in_progress: '◐' }

export function markOf(status: string | undefined): string {
  return MARKS[status ?? ''] ?? '○'
}

export function titleOf(call: ToolCall | undefined): string {
  return asText(call?.title) || asText(call?.kind) || 'A tool'
}

/** Everything there is to see: texts, diffs, else what the tool was given. */
export function detailOf(call: ToolCall | undefined): string {
  const content = Array.isArray(call?.content) ? call.content.map(describe).filter(Boolean) : []
  const input = call?.rawInput === undefined || isEmpty(call.rawInput) ? [] : [JSON.stringify(call.rawInput, null, 2)]
  return [...input, ...content].join('\n')
}

function describe(part: Record<string, unknown> | null): string {
  switch (part?.type) {
    case 'content':
      return asText((part.content as { text?: unknown } | null)?.text)
    case 'diff':
      return [`${asText(part.path)}`, ...lines('- ', part.oldText), ...lines('+ ', part.newText)].join('\n')
    case 'terminal':
      return '(in a terminal)'
    default:
      return part ? JSON.stringify(part) : ''
  }
}

function lines(mark: string, text: unknown): string[] {
  return typeof text === 'string' && text ? text.replace(/\n$/, '').split('\n').map((line) => mark + line) : []
}

function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value as object).length === 0)
}

function asText(value: unknown): string {
  if (typeof value === 'string') return value
  return value == null ? '' : JSON.stringify(value)
}
