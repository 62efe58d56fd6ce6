/** What time it is, for everything on the page that says how long ago something was: one timer, while someone looks. */
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
export const eachMinute = every(20_000)
