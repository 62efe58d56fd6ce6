import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { workerEndText, endReasonText, stopReasonText } from './reasons.ts'

const path = new URL('../../../tests/golden/words/reasons.json', import.meta.url)
const golden = JSON.parse(readFileSync(path, 'utf8')) as Record<'ended' | 'worker' | 'turn', Record<string, string>>

test.each([
  ['ended', endReasonText],
  ['worker', workerEndText],
  ['turn', stopReasonText],
] as const)('the page has the same texts as the server: %s', (kind, textOf) => {
  const actual = Object.keys(golden[kind]).map((reason) => [reason, textOf(reason)])
  expect(Object.fromEntries(actual)).toEqual(golden[kind])
})

test('a missing reason is unknown', () => expect(endReasonText(null)).toBe('unknown'))
