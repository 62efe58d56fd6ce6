/**
 * The credentials of this page: the secret of a login, or the token of a share link.
 *
 * Cookies are shared between ports, so a login also needs a secret in the storage of this origin, which pages of other
 * ports cannot read. The token of a share link is never stored; it stays in the address.
 */

const KEY = 'bullpen.secret'

/** Return the secret of this login, or an empty string. */
export function secret(): string {
  return localStorage.getItem(KEY) ?? ''
}

export function storeSecret(value: string): void {
  localStorage.setItem(KEY, value)
}

let shareToken: string | undefined

/** Use the token of a share link for all requests, even if this browser is logged in. */
export function useShareToken(token: string): void {
  shareToken = token
}

/** Return the header with the credentials that every request needs. */
export function credentialHeaders(): Record<string, string> {
  return shareToken ? { Authorization: `Bearer ${shareToken}` } : { 'X-Bullpen-Secret': secret() }
}
