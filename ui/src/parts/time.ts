/** Times as people say them: how long ago, since when, how long. */
const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** "now", "5 min", "3 h", "2 d": short enough for a list. */
export function age(iso: string, now: number): string {
  const minutes = Math.max(0, Math.floor((now - Date.parse(iso)) / 60_000))
  if (minutes < 1) return 'now'
  if (minutes < 60) return `${minutes} min`
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h`
  return `${Math.floor(minutes / 1440)} d`
}

/** "14:05", with the day when it was another one. */
export function clock(iso: string, now: number): string {
  const time = new Date(iso)
  const today = new Date(now).toDateString() === time.toDateString()
  const words: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', ...(!today && { day: 'numeric', month: 'short' }) }
  return time.toLocaleString(undefined, words)
}

/** "just now", "5 min ago", and the day when it is long ago; rounded as `age` rounds, which may stand beside it. */
export function ago(at: string, now: number): string {
  if (now - Date.parse(at) >= 30 * DAY * 1000) return new Date(at).toLocaleDateString()
  const words = age(at, now)
  return words === 'now' ? 'just now' : `${words} ago`
}

/** To the second, for who asks. */
export function exactly(at: string): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'medium' })
}

/** "12 s", "3 min 5 s": what goes on. */
export function lasting(since: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000))
  if (seconds < MINUTE) return `${seconds} s`
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min ${seconds % MINUTE} s`
  return `${Math.floor(seconds / HOUR)} h ${Math.floor((seconds % HOUR) / MINUTE)} min`
}

/** As a field of the browser has it: local, to the minute. */
export function field(iso: string | null): string {
  if (!iso) return ''
  const time = new Date(iso)
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

export function fromField(value: string): string | null {
  return value ? new Date(value).toISOString() : null
}
