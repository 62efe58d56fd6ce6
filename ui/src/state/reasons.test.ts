import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { howWorkerEnded, whyEnded, whyTurnEnded } from './reasons.ts'

const path = new URL('../../../tests/golden/words/reasons.json', import.meta.url)
const words = JSON.parse(readFileSync(path, 'utf8')) as Record<'ended' | 'worker' | 'turn', Record<string, string>>

test.each([
  ['ended', whyEnded],
  ['worker', howWorkerEnded],
  ['turn', whyTurnEnded],
] as const)('the words of the page are those of the server: %s', (kind, say) => {
  const said = Object.keys(words[kind]).map((reason) => [reason, say(reason)])
  expect(Object.fromEntries(said)).toEqual(words[kind])
})

test('who was told no reason says so', () => expect(whyEnded(null)).toBe('unknown'))
