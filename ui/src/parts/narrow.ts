/** Whether the page has the width of a phone, as its style sheets draw the line; whoever asks follows it. */
import { MediaQuery } from 'svelte/reactivity'

let query: MediaQuery | undefined

export function isNarrow(): boolean {
  query ??= new MediaQuery('(max-width: 48rem)')
  return query.current
}
