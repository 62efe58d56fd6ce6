/** Format the context usage and cost of an agent. */
import type { Usage } from '../state/conversation.ts'
import { asObject } from './tool-call-text.ts'

export interface UsageText {
  short: string
  details: string
  share: number | undefined
}

/** Return the usage as short and detailed text, and the used share of the context; undefined if the agent reports nothing. */
export function usageOf({ used, size, cost }: Usage): UsageText | undefined {
  const money = priceOf(cost)
  if (typeof used !== 'number') return money ? { short: money, details: `Cost so far: ${money}`, share: undefined } : undefined
  const share = typeof size === 'number' && size > 0 ? Math.min(1, used / size) : undefined
  const room = share === undefined ? short(used) : `${short(used)} / ${short(size as number)}`
  const details = share === undefined ? `${used.toLocaleString()} tokens` : `${used.toLocaleString()} of ${(size as number).toLocaleString()} tokens, ${Math.round(share * 100)} %`
  return { short: money ? `${room} · ${money}` : room, details: money ? `${details}; cost so far: ${money}` : details, share }
}

function priceOf(cost: unknown): string {
  const { amount, currency } = asObject(cost)
  if (typeof amount !== 'number') return ''
  return currency === 'USD' || currency === undefined ? `$${amount.toFixed(2)}` : `${amount.toFixed(2)} ${String(currency)}`
}

function short(tokens: number): string {
  if (tokens < 1000) return String(tokens)
  return tokens < 1_000_000 ? `${roundShort(tokens / 1000)}k` : `${roundShort(tokens / 1_000_000)}M`
}

function roundShort(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toFixed(1).replace(/\.0$/, '')
}
