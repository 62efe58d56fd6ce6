/** Why something ended, in words for a person: the twin of `domain/reasons.py`, which passes the same list. */
const BY_A_PERSON = 'ended by a person'

/** Of a session or a worker. */
const END: Record<string, string> = {
  user_request: BY_A_PERSON,
  'user requested': BY_A_PERSON, // of a worker, as the relay says it
  cancelled: BY_A_PERSON,
  last_disconnect: 'its last viewer left',
  idle_timeout: 'it was idle for too long',
  error: 'it failed',
  replaced: 'another took its role',
}

const TURN: Record<string, string> = {
  end_turn: 'the turn is over',
  max_tokens: 'it has used all its tokens',
  max_turn_requests: 'it has made all the requests a turn may make',
  refusal: 'it refuses to go on',
  error: 'it failed',
  unknown: 'the agent did not say why',
}

export function whyEnded(reason: string | null): string {
  return wordFor(END, reason)
}

/** Agents have stop reasons of their own too. */
export function whyTurnEnded(stopReason: string | null): string {
  return wordFor(TURN, stopReason)
}

export function howWorkerEnded(reason: string | null): string {
  const why = whyEnded(reason)
  return why === BY_A_PERSON ? why : `ended: ${why}`
}

/** A failure with the name of the worker: the server says "it ended with exit code 3" of whatever failed. */
export function whoFailed(worker: { readonly name: string } | undefined, error: string): string {
  if (!worker) return error
  return error.startsWith('it ') ? `${worker.name} ${error.slice(3)}` : `${worker.name}: ${error}`
}

/** Whether a word is a reason of an end: what then stayed open was answered by nobody. */
export function isEnd(word: string): boolean {
  return Object.hasOwn(END, word)
}

/** A word of a protocol that has no other is at least readable. */
function wordFor(words: Record<string, string>, word: string | null): string {
  const known = word !== null && Object.hasOwn(words, word) ? words[word] : undefined
  return known ?? (word || 'unknown').replaceAll('_', ' ')
}
