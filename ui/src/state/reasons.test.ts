import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { workerEndText, endReasonText, refusalText, stopReasonText } from './reasons.ts'

const path = new URL('../../../tests/golden/words/reasons.json', import.meta.url)
const golden = JSON.parse(readFileSync(path, 'utf8')) as Record<'ended' | 'worker' | 'refused', Record<string, string>>

/** Return the text of a refusal that is written as "kind target program". */
function refusalTextOf(refusal: string): string {
  const [kind, target, ...program] = refusal.split(' ')
  return refusalText({ kind, target, program: program.join(' ') })
}

test.each([
  ['ended', endReasonText],
  ['worker', workerEndText],
  ['refused', refusalTextOf],
] as const)('the page has the same texts as the server: %s', (kind, textOf) => {
  const actual = Object.keys(golden[kind]).map((reason) => [reason, textOf(reason)])
  expect(Object.fromEntries(actual)).toEqual(golden[kind])
})

test('the end of a turn is a sentence, also for a reason that only one agent has', () => {
  expect(stopReasonText('max_tokens')).toBe('The agent stopped: it reached its token limit.')
  expect(stopReasonText('out_of_coffee')).toBe('The turn ended: out of coffee.')
})

test('a missing reason is unknown', () => expect(endReasonText(null)).toBe('unknown'))
