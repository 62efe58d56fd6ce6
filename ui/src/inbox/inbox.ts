/** What the things in the inbox are called, and what they say. */
import type { InboxItem } from '../api/types/inbox.ts'
import type { Need } from '../state/attention.ts'
import { whoFailed } from '../state/reasons.ts'

export const KINDS: Record<InboxItem['kind'], { need: Need; label: string }> = {
  permission: { need: 'asking', label: 'Permission' },
  question: { need: 'asking', label: 'Question' },
  asking: { need: 'asking', label: 'Asks in its terminal' },
  failed: { need: 'error', label: 'Failed' },
  finished: { need: 'done', label: 'Finished' },
}

const ENDS = new Map([
  ['end_turn', 'The turn is over.'],
  ['max_tokens', 'It has used all its tokens.'],
  ['max_turn_requests', 'It has made all the requests a turn may make.'],
  ['refusal', 'It refuses to go on.'],
])

/** How a turn ended is a word of the protocol, and a failure has no subject; everything else is a sentence already. */
export function textOf({ kind, text }: Pick<InboxItem, 'kind' | 'text'>, worker: { readonly name: string } | undefined): string {
  if (kind === 'failed') return whoFailed(worker, text)
  return (kind === 'finished' && ENDS.get(text)) || text
}
