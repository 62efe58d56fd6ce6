import { expect, test } from 'vitest'
import type { UsageGroup } from '../api/types/usage.ts'
import { barsOf, costIn, money, scale, short, TOKENS } from './usage-numbers.ts'

const day: UsageGroup = {
  key: '2026-03-01', title: '', sessionId: null, seq: null, since: '2026-03-01T10:00:00.000Z', turns: 2,
  inputTokens: 90, outputTokens: 5, cachedReadTokens: 3, cachedWriteTokens: 0, thoughtTokens: 2, totalTokens: 110,
  costs: [{ amount: 0.5, currency: 'USD' }],
}
const NOW = Date.UTC(2026, 2, 2, 23, 30)

test('each day has a bar, the newest last, in local time', () => {
  expect(barsOf([day], 3, TOKENS, NOW, 0).map(({ key, total }) => [key, total])).toEqual([['2026-02-28', 0], ['2026-03-01', 110], ['2026-03-02', 0]])
  expect(barsOf([day], 1, TOKENS, NOW, 60)[0]?.key).toBe('2026-03-03')
})

test('tokens are split into the parts that the agent reports', () => {
  expect(TOKENS.parts(day)).toEqual([{ name: 'Input', value: 90 }, { name: 'Cached', value: 3 }, { name: 'Output', value: 7 }, { name: 'Other', value: 10 }])
})

test('each currency is a separate measure', () => {
  expect(costIn('USD').parts(day)).toEqual([{ name: 'Cost', value: 0.5 }])
  expect(costIn('EUR').parts(day)).toEqual([])
})

test.each([[0, [0, 1]], [7, [0, 2, 4, 6, 8]], [100, [0, 50, 100]], [0.03, [0, 0.01, 0.02, 0.03]], [1, [0, 0.5, 1]]])('the scale for %d has round numbers', (most, lines) => {
  expect(scale(most).map((line) => Number(line.toFixed(6)))).toEqual(lines)
})

test('numbers and amounts have a short format', () => {
  expect([950, 1234, 99_960, 2_500_000].map(short)).toEqual(['950', '1.2k', '100k', '2.5M'])
  expect([money({ amount: 0.0042, currency: 'USD' }), money({ amount: 3, currency: 'EUR' })]).toEqual(['$0.0042', '3.00 EUR'])
})
