/** The current time for all relative times on the page. They share one clock, so that they agree. */
import { createSubscriber } from 'svelte/reactivity'

const TICK_MS = 1000

let time = Date.now()

const subscribe = createSubscriber((update) => {
  const timer = setInterval(() => {
    time = Date.now()
    update()
  }, TICK_MS)
  time = Date.now()
  return () => clearInterval(timer)
})

/** Return the current time in milliseconds; components that call this update every second. */
export function now(): number {
  subscribe()
  return time
}
