/** A local storage in memory for tests. */
import { vi } from 'vitest'

/** Replace localStorage; return its content. */
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

/** Make each further write fail, as if the storage were full. */
export function fillStorage(): void {
  localStorage.setItem = () => {
    throw new DOMException('full', 'QuotaExceededError')
  }
}
