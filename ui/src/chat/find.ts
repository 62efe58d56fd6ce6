/** Find text in the entries of a conversation: messages, tool calls, plans, permissions, questions and notes. */
import type { Entries, Entry } from '../state/chat.ts'
import { commandOf, titleOf } from './describe.ts'

/** Return the indexes of the entries that contain the text, ignoring case. */
export function placesOf(entries: Entries, words: string): number[] {
  const wanted = words.trim().toLowerCase()
  if (!wanted) return []
  return entries.flatMap((entry, place) => (wordsOf(entry).toLowerCase().includes(wanted) ? [place] : []))
}

function wordsOf(entry: Entry): string {
  switch (entry.kind) {
    case 'prompt':
    case 'text':
    case 'note':
      return entry.text
    case 'tool':
    case 'permission':
      return `${titleOf(entry.call)} ${commandOf(entry.call) ?? ''} ${JSON.stringify(entry.call?.content ?? '')}`
    case 'plan':
      return entry.steps.map(({ text }) => text).join(' ')
    case 'question':
      return entry.message
    case 'content':
      return ''
  }
}
