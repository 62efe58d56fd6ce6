/** What turns used, in the numbers and bars the page shows. */
import type { UsageGroup, Used } from '../api/types/usage.ts'

export interface Bar {
  /** The day, as the server names it. */
  key: string
  parts: readonly { name: string; value: number }[]
  total: number
}

const DAY = 86_400_000 // ms

/** One bar for each of the last days, empty ones too; `now` in the reader's own time. */
export function barsOf(groups: readonly UsageGroup[], days: number, measure: Measure, now: number, offset: number): Bar[] {
  const known = new Map(groups.map((group) => [group.key, group]))
  return Array.from({ length: days }, (_, n) => {
    const key = new Date(now + offset * 60_000 - (days - 1 - n) * DAY).toISOString().slice(0, 10)
    const group = known.get(key)
    const parts = group ? measure.parts(group) : []
    return { key, parts, total: parts.reduce((sum, { value }) => sum + value, 0) }
  })
}

export interface Measure {
  label: string
  parts: (used: Used) => { name: string; value: number }[]
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

export function costIn(currency: string): Measure {
  return {
    label: `Cost in ${currency}`,
    parts: (used) => used.costs.filter((cost) => cost.currency === currency).map(({ amount }) => ({ name: 'Cost', value: amount })),
    format: (value) => money({ amount: value, currency }),
  }
}

export function short(count: number): string {
  if (count < 1000) return String(Math.round(count))
  return count < 1_000_000 ? `${trim(count / 1000)}k` : `${trim(count / 1_000_000)}M`
}

export function money({ amount, currency }: { amount: number; currency: string }): string {
  const digits = amount !== 0 && amount < 0.01 ? 4 : 2
  return currency === 'USD' ? `$${amount.toFixed(digits)}` : `${amount.toFixed(digits)} ${currency}`
}

export function costs(used: Used): string {
  return used.costs.map(money).join(' + ') || '–'
}

/** Where the lines of a scale are: a few round numbers, the last at or above the highest bar. */
export function scale(most: number, lines = 4): number[] {
  if (most <= 0) return [0, 1]
  const rough = most / lines
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, n) => n * step)
}

function trim(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toFixed(1).replace(/\.0$/, '')
}
