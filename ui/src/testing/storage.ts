/** A storage of the origin in memory; what it returns is what is in it. */
import { vi } from 'vitest'

export function fakeStorage(kept: Record<string, string> = {}): Map<string, string> {
  const stored = new Map(Object.entries(kept))
  vi.stubGlobal('localStorage', {
    get length() {
      return stored.size
    },
    key: (n: number) => [...stored.keys()][n] ?? null,
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => void stored.set(key, value),
    removeItem: (key: string) => void stored.delete(key),
  })
  return stored
}

/** From now on nothing more fits into it. */
export function fillStorage(): void {
  localStorage.setItem = () => {
    throw new DOMException('full', 'QuotaExceededError')
  }
}
