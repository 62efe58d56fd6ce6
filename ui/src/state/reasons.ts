/** Texts for the reasons why sessions, workers and turns end. Those of sessions and workers are as in `domain/reasons.py`, checked by the same golden file. */

const BY_A_PERSON = 'ended by a person'

/** Reasons for the end of a session or a worker. */
const END_REASONS: Record<string, string> = {
  user_request: BY_A_PERSON,
  'user requested': BY_A_PERSON, // of a worker, in the notices of the relay
  cancelled: BY_A_PERSON,
  last_disconnect: 'its last viewer left',
  idle_timeout: 'it was idle for too long',
  error: 'it failed',
  replaced: 'another took its role',
}

const STOP_REASONS: Record<string, string> = {
  end_turn: 'Finished.',
  cancelled: 'The turn was stopped.',
  max_tokens: 'The agent stopped: it reached its token limit.',
  max_turn_requests: 'The agent stopped: it reached its limit of requests in one turn.',
  refusal: 'The agent refused to continue.',
  error: 'The turn failed.',
  unknown: 'The agent stopped without giving a reason.',
}

/** Return the text of the reason why a session or worker ended. */
export function endReasonText(reason: string | null): string {
  return textFor(END_REASONS, reason)
}

/** Return whether a user ended a session or worker. Views show the other reasons, which the user may not know. */
export function isEndedByUser(reason: string | null): boolean {
  return endReasonText(reason) === BY_A_PERSON
}

/** Return how a turn ended, as a sentence. Agents may send other reasons than those of the protocol. */
export function stopReasonText(stopReason: string): string {
  return Object.hasOwn(STOP_REASONS, stopReason) ? (STOP_REASONS[stopReason] as string) : `The turn ended: ${readable(stopReason)}.`
}

/** Return how a worker ended, as a phrase. */
export function workerEndText(reason: string | null): string {
  const why = endReasonText(reason)
  return isEndedByUser(reason) ? why : `ended: ${why}`
}

/** Return a failure with the name of the worker; errors of the server begin with "it", as in "it ended with exit code 3". */
export function failureText(worker: { readonly name: string } | undefined, error: string): string {
  if (!worker) return error
  return error.startsWith('it ') ? `${worker.name} ${error.slice(3)}` : `${worker.name}: ${error}`
}

/** Return what the sandbox refused to a program, as `refusal_text` of the server does. */
export function refusalText({ kind, target, program }: Readonly<Record<string, unknown>>): string {
  return `${program || 'a program'} may not ${kind === 'host' ? 'reach' : kind} ${target}`
}

/** Return whether a text is a reason of an end rather than the name of a device. An ended request has no answer. */
export function isEndReason(reason: string): boolean {
  return Object.hasOwn(END_REASONS, reason)
}

/** Return the text for a reason, or the reason itself with spaces instead of underscores. */
function textFor(texts: Record<string, string>, reason: string | null): string {
  const text = reason !== null && Object.hasOwn(texts, reason) ? texts[reason] : undefined
  return text ?? readable(reason || 'unknown')
}

function readable(word: string): string {
  return word.replaceAll('_', ' ')
}
