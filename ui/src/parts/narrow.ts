/** Whether the page is as narrow as on a phone, by the same limit as the style sheets. */
import { MediaQuery } from 'svelte/reactivity'

let query: MediaQuery | undefined

/** Return whether the page is narrow; components that call this update when it changes. */
export function isNarrow(): boolean {
  query ??= new MediaQuery('(max-width: 48rem)')
  return query.current
}
