import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { workerEndText, endReasonText, stopReasonText } from './reasons.ts'

const path = new URL('../../../tests/golden/words/reasons.json', import.meta.url)
const golden = JSON.parse(readFileSync(path, 'utf8')) as Record<'ended' | 'worker', Record<string, string>>

test.each([
  ['ended', endReasonText],
  ['worker', workerEndText],
] as const)('the page has the same texts as the server: %s', (kind, textOf) => {
  const actual = Object.keys(golden[kind]).map((reason) => [reason, textOf(reason)])
  expect(Object.fromEntries(actual)).toEqual(golden[kind])
})

test('the end of a turn is a sentence, also for a reason that only one agent has', () => {
  expect(stopReasonText('max_tokens')).toBe('The agent stopped: it reached its token limit.')
  expect(stopReasonText('out_of_coffee')).toBe('The turn ended: out of coffee.')
})

test('a missing reason is unknown', () => expect(endReasonText(null)).toBe('unknown'))
