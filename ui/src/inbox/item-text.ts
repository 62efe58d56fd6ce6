/** Labels and texts of inbox items. */
import type { InboxItem } from '../api/types/inbox.ts'
import type { Need } from '../state/attention.ts'
import { failureText, stopReasonText } from '../state/reasons.ts'

export const KINDS: Record<InboxItem['kind'], { need: Need; label: string }> = {
  permission: { need: 'asking', label: 'Permission' },
  question: { need: 'asking', label: 'Question' },
  asking: { need: 'asking', label: 'Needs input in its terminal' },
  refused: { need: 'asking', label: 'Refused' },
  failed: { need: 'error', label: 'Failed' },
  finished: { need: 'done', label: 'Finished' },
}

/** Return the text of an item. Stop reasons become sentences, and failures get the name of their agent. */
export function itemText({ kind, text }: Pick<InboxItem, 'kind' | 'text'>, worker: { readonly name: string } | undefined): string {
  if (kind === 'failed') return failureText(worker, text)
  return kind === 'finished' ? stopReasonText(text) : text
}
