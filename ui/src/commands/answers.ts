/** The keys that answer a permission: single letters, as they are only heard while its card has the focus. A person may choose others. */
import { keysOf } from './shortcuts.ts'

export interface Answer {
  id: string
  title: string
  group: string
  keys: string
  /** Of the options it may stand for, the one that is meant first. */
  kinds: readonly string[]
}

export const ANSWERS: readonly Answer[] = [
  { id: 'permission.allow', title: 'Allow', group: 'When a permission has the focus', keys: 'a', kinds: ['allow_once'] },
  { id: 'permission.always', title: 'Always allow', group: 'When a permission has the focus', keys: 'A', kinds: ['allow_always'] },
  { id: 'permission.deny', title: 'Deny', group: 'When a permission has the focus', keys: 'd', kinds: ['reject_once', 'reject_always'] },
]

const OF_THE_INBOX = ['j', 'k', 's'] // which goes from card to card with them

/** Whether a letter, as the keyboard prints it, may stand for an answer. */
export function mayAnswer(key: string): boolean {
  return /^[\p{L}\p{N}]$/u.test(key) && !OF_THE_INBOX.includes(key)
}

export function optionFor<O extends { kind: string }>(key: string, options: readonly O[]): O | undefined {
  const answer = ANSWERS.find((each) => keysOf(each) === key)
  return answer && meant(answer, options)
}

export function keyOf<O extends { kind: string }>(option: O, options: readonly O[]): string | undefined {
  const answer = ANSWERS.find((each) => meant(each, options) === option)
  return answer && keysOf(answer)
}

function meant<O extends { kind: string }>({ kinds }: Answer, options: readonly O[]): O | undefined {
  return kinds.flatMap((kind) => options.filter((option) => option.kind === kind))[0]
}
