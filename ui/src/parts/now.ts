/** The present time for every text that says how long ago something was. All of them read one clock, so that they agree. */
import { createSubscriber } from 'svelte/reactivity'

const TICK = 1000 // milliseconds

let time = Date.now()

const follow = createSubscriber((update) => {
  const timer = setInterval(() => {
    time = Date.now()
    update()
  }, TICK)
  time = Date.now()
  return () => clearInterval(timer)
})

export function now(): number {
  follow()
  return time
}
