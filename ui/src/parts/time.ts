/** Times as people say them: how long ago, since when. */

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
