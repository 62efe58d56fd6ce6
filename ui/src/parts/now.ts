/** The present time, for who shows ages: it moves on twice a minute while somebody looks. */
import { createSubscriber } from 'svelte/reactivity'

const follow = createSubscriber((update) => {
  const timer = setInterval(update, 30_000)
  return () => clearInterval(timer)
})

export function now(): number {
  follow()
  return Date.now()
}
