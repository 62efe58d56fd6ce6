/** Return whether an address can be reached only from its own machine. */
export function isLoopback(address: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(address).hostname)
}
