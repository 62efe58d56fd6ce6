/** Find text in the entries of a conversation: messages, tool calls, plans, permissions, questions and notes. */
import type { Entries, Entry } from '../state/entries.ts'
import { commandOf, callTitle } from './tool-call-text.ts'

/** Return the indexes of the entries that contain the text, ignoring case. */
export function findEntries(entries: Entries, text: string): number[] {
  const needle = text.trim().toLowerCase()
  if (!needle) return []
  return entries.flatMap((entry, index) => (searchableText(entry).toLowerCase().includes(needle) ? [index] : []))
}

function searchableText(entry: Entry): string {
  switch (entry.kind) {
    case 'prompt':
    case 'text':
    case 'note':
      return entry.text
    case 'tool':
    case 'permission':
      return `${callTitle(entry.call)} ${commandOf(entry.call) ?? ''} ${JSON.stringify(entry.call?.content ?? '')}`
    case 'plan':
      return entry.steps.map(({ text }) => text).join(' ')
    case 'question':
      return entry.message
    case 'content':
      return ''
  }
}
