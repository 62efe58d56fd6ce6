/** The keys that answer a permission request: single letters, because they work only while its card has the focus. The user can change them. */
import { keysOf } from './shortcuts.ts'

/** An answer to a permission that has a key. */
export interface Answer {
  id: string
  title: string
  group: string
  keys: string
  /** The kinds of options that this key selects, the preferred kind first. */
  kinds: readonly string[]
}

export const ANSWERS: readonly Answer[] = [
  { id: 'permission.allow', title: 'Allow', group: 'When a permission has the focus', keys: 'a', kinds: ['allow_once'] },
  { id: 'permission.always', title: 'Always allow', group: 'When a permission has the focus', keys: 'A', kinds: ['allow_always'] },
  { id: 'permission.deny', title: 'Deny', group: 'When a permission has the focus', keys: 'd', kinds: ['reject_once', 'reject_always'] },
]

const INBOX_KEYS = ['j', 'k', 's'] // the inbox moves between cards and marks them as seen with these keys

/** Return whether a character can be used as an answer key. */
export function isAnswerKey(key: string): boolean {
  return /^[\p{L}\p{N}]$/u.test(key) && !INBOX_KEYS.includes(key)
}

/** Return the option that a key selects, or undefined if it selects none. */
export function optionFor<O extends { kind: string }>(key: string, options: readonly O[]): O | undefined {
  const answer = ANSWERS.find((each) => keysOf(each) === key)
  return answer && matchingOption(answer, options)
}

/** Return the key that selects an option, or undefined if it has none. */
export function keyOf<O extends { kind: string }>(option: O, options: readonly O[]): string | undefined {
  const answer = ANSWERS.find((each) => matchingOption(each, options) === option)
  return answer && keysOf(answer)
}

/** Return the first option of the most preferred kind that is offered, or undefined. */
function matchingOption<O extends { kind: string }>({ kinds }: Answer, options: readonly O[]): O | undefined {
  return kinds.flatMap((kind) => options.filter((option) => option.kind === kind))[0]
}
