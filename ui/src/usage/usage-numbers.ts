/** Convert usage into the bars, scales and numbers of the usage page. */
import type { UsageGroup, UsageTotals } from '../api/types/usage.ts'

export interface Bar {
  /** The day as YYYY-MM-DD. */
  key: string
  parts: readonly { name: string; value: number }[]
  total: number
}

const DAY_MS = 86_400_000

/** Return one bar for each of the last days, including empty ones; `offset` is the UTC offset in minutes. */
export function barsOf(groups: readonly UsageGroup[], days: number, measure: Measure, now: number, offset: number): Bar[] {
  const known = new Map(groups.map((group) => [group.key, group]))
  return Array.from({ length: days }, (_, n) => {
    const key = new Date(now + offset * 60_000 - (days - 1 - n) * DAY_MS).toISOString().slice(0, 10)
    const group = known.get(key)
    const parts = group ? measure.parts(group) : []
    return { key, parts, total: parts.reduce((sum, { value }) => sum + value, 0) }
  })
}

/** What the bars show: tokens, or the cost in one currency. */
export interface Measure {
  label: string
  parts: (used: UsageTotals) => { name: string; value: number }[]
  format: (value: number) => string
}

export const TOKENS: Measure = {
  label: 'Tokens',
  parts: (used) => {
    const known = [
      { name: 'Input', value: used.inputTokens },
      { name: 'Cached', value: used.cachedReadTokens + used.cachedWriteTokens },
      { name: 'Output', value: used.outputTokens + used.thoughtTokens },
    ]
    const rest = used.totalTokens - known.reduce((sum, { value }) => sum + value, 0)
    return [...known, { name: 'Other', value: Math.max(0, rest) }].filter(({ value }) => value > 0)
  },
  format: short,
}

/** Return the measure for the cost in one currency. */
export function costIn(currency: string): Measure {
  return {
    label: `Cost in ${currency}`,
    parts: (used) => used.costs.filter((cost) => cost.currency === currency).map(({ amount }) => ({ name: 'Cost', value: amount })),
    format: (value) => money({ amount: value, currency }),
  }
}

/** Format a count such as "950", "1.2k" or "2.5M". */
export function short(count: number): string {
  if (count < 1000) return String(Math.round(count))
  return count < 1_000_000 ? `${roundShort(count / 1000)}k` : `${roundShort(count / 1_000_000)}M`
}

export function money({ amount, currency }: { amount: number; currency: string }): string {
  const digits = amount !== 0 && amount < 0.01 ? 4 : 2
  return currency === 'USD' ? `$${amount.toFixed(digits)}` : `${amount.toFixed(digits)} ${currency}`
}

/** Format the costs in all currencies. */
export function costs(used: UsageTotals): string {
  return used.costs.map(money).join(' + ') || '–'
}

/** Return the values of a scale's lines: a few round numbers, the last at or above the highest bar. */
export function scale(maximum: number, lines = 4): number[] {
  if (maximum <= 0) return [0, 1]
  const roughStep = maximum / lines
  const power = 10 ** Math.floor(Math.log10(roughStep))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= roughStep) ?? roughStep
  return Array.from({ length: Math.ceil(maximum / step - 1e-9) + 1 }, (_, n) => n * step)
}

function roundShort(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toFixed(1).replace(/\.0$/, '')
}
