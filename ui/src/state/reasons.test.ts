import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { howWorkerEnded, whyEnded, whyTurnEnded } from './reasons.ts'

const path = new URL('../../../tests/golden/words/reasons.json', import.meta.url)
const words = JSON.parse(readFileSync(path, 'utf8')) as Record<'ended' | 'worker' | 'turn', Record<string, string>>

test.each([
  ['ended', whyEnded],
  ['worker', howWorkerEnded],
  ['turn', whyTurnEnded],
] as const)('the page has the same texts as the server: %s', (kind, say) => {
  const said = Object.keys(words[kind]).map((reason) => [reason, say(reason)])
  expect(Object.fromEntries(said)).toEqual(words[kind])
})

test('a missing reason is unknown', () => expect(whyEnded(null)).toBe('unknown'))
