/** How people say when something was and how long it takes. */
const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export function ago(at: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(at)) / 1000)
  if (seconds < 45) return 'just now'
  if (seconds < HOUR) return `${Math.max(1, Math.round(seconds / MINUTE))} min ago`
  if (seconds < DAY) return `${Math.round(seconds / HOUR)} h ago`
  return seconds < 30 * DAY ? `${Math.round(seconds / DAY)} d ago` : new Date(at).toLocaleDateString()
}

export function exactly(at: string): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'medium' })
}

export function lasting(since: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000))
  if (seconds < MINUTE) return `${seconds} s`
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min ${seconds % MINUTE} s`
  return `${Math.floor(seconds / HOUR)} h ${Math.floor((seconds % HOUR) / MINUTE)} min`
}
