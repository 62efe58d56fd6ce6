/** The present time, for everything that says how long ago something was: one timer each, while somebody looks. */
import { createSubscriber } from 'svelte/reactivity'

function every(milliseconds: number): () => number {
  const follow = createSubscriber((update) => {
    const timer = setInterval(update, milliseconds)
    return () => clearInterval(timer)
  })
  return () => {
    follow()
    return Date.now()
  }
}

export const eachSecond = every(1000)
export const now = every(20_000)
