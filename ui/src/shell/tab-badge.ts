/** Compute the title and the icon of the browser tab, which show how many sessions need the user. */

/** The numbers of sessions that need the user, by their need. */
export interface Waiting {
  asking: number
  error: number
  done: number
}

/** Return the title of the tab: a symbol and a count, then the name of the view. */
export function titleOf(name: string | undefined, waiting: Waiting): string {
  const count = waiting.asking + waiting.error + waiting.done
  const sign = waiting.asking ? '●' : waiting.error ? '✕' : '◆'
  return `${count ? `${sign} ${count} · ` : ''}${name ? `${name} · ` : ''}Bullpen`
}

/** Return the name of the icon file. It is a file, because the content security policy allows only images of this origin. */
export function iconOf(waiting: Waiting): 'asking' | 'error' | 'done' | 'quiet' {
  return waiting.asking ? 'asking' : waiting.error ? 'error' : waiting.done ? 'done' : 'quiet'
}
