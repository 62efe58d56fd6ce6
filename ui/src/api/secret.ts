/** The second half of a login: it lives in this origin's storage, where no other port's page can read it. */

const KEY = 'bullpen.secret'

export function secret(): string {
  return localStorage.getItem(KEY) ?? ''
}

export function keepSecret(value: string): void {
  localStorage.setItem(KEY, value)
}
