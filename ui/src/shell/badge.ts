/** What needs a person, said by the title and the icon of the tab. */

export interface Waiting {
  asking: number
  error: number
  done: number
}

export function titleOf(name: string | undefined, waiting: Waiting): string {
  const count = waiting.asking + waiting.error + waiting.done
  const sign = waiting.asking ? '●' : waiting.error ? '✕' : '◆'
  return `${count ? `${sign} ${count} · ` : ''}${name ? `${name} · ` : ''}Bullpen`
}

/** Files, not addresses made here: the policy allows our own images only. */
export function iconOf(waiting: Waiting): 'asking' | 'error' | 'done' | 'quiet' {
  return waiting.asking ? 'asking' : waiting.error ? 'error' : waiting.done ? 'done' : 'quiet'
}
