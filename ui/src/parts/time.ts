/** Format times: relative times, clock times and durations. */

const MINUTE = 60 // seconds
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Return the age of a time in short form: "now", "5 min", "3 h" or "2 d". */
export function age(iso: string, now: number): string {
  const minutes = Math.max(0, Math.floor((now - Date.parse(iso)) / 60_000))
  if (minutes < 1) return 'now'
  if (minutes < 60) return `${minutes} min`
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h`
  return `${Math.floor(minutes / 1440)} d`
}

/** Return a clock time such as "14:05", with the date if it is not today. */
export function clock(iso: string, now: number): string {
  const time = new Date(iso)
  const today = new Date(now).toDateString() === time.toDateString()
  const words: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', ...(!today && { day: 'numeric', month: 'short' }) }
  return time.toLocaleString(undefined, words)
}

/** Return "just now", "5 min ago" and so on, or the date after 30 days; rounded like `age`, which may be shown beside it. */
export function ago(at: string, now: number): string {
  if (now - Date.parse(at) >= 30 * DAY * 1000) return new Date(at).toLocaleDateString()
  const words = age(at, now)
  return words === 'now' ? 'just now' : `${words} ago`
}

/** Return the full date and time with seconds. */
export function fullTime(at: string): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'medium' })
}

/** Return the time since a moment, such as "12 s" or "3 min 5 s". */
export function duration(since: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000))
  if (seconds < MINUTE) return `${seconds} s`
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min ${seconds % MINUTE} s`
  return `${Math.floor(seconds / HOUR)} h ${Math.floor((seconds % HOUR) / MINUTE)} min`
}

/** Return a time as the value of a datetime-local field: local time with minutes. */
export function toInputValue(iso: string | null): string {
  if (!iso) return ''
  const time = new Date(iso)
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** Return the ISO time of the value of a datetime-local field, or null if it is empty. */
export function fromInputValue(value: string): string | null {
  return value ? new Date(value).toISOString() : null
}
