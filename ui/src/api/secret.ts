/**
 * What lets this page in. The second half of a login lives in this origin's storage, where no other port's page can
 * read it; the token of a guest stays in the address it came with.
 */

const KEY = 'bullpen.secret'

export function secret(): string {
  return localStorage.getItem(KEY) ?? ''
}

export function keepSecret(value: string): void {
  localStorage.setItem(KEY, value)
}

let guestToken: string | undefined

/** From now on this page is a guest's, whoever else is logged in with this browser. */
export function comeAsGuest(token: string): void {
  guestToken = token
}

/** The header that every request carries. */
export function pass(): Record<string, string> {
  return guestToken ? { Authorization: `Bearer ${guestToken}` } : { 'X-Bullpen-Secret': secret() }
}
