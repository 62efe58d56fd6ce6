/** Whether somebody is logged in to an agent, in words; a hint, for signs can be missing where a login is there. */
import type { Agent } from '../api/types/agents.ts'
import { quoted } from '../parts/shell.ts'

/** How an agent that is installed stands, in a word or two. */
export function stateOf({ installed, loggedIn }: Pick<Agent, 'installed' | 'loggedIn'>): string {
  if (!installed) return 'not installed'
  return { yes: 'logged in', no: 'no login found', unknown: 'installed', none: 'installed' }[loggedIn]
}

/** Whether an agent could be started and nobody seems to be logged in to it. */
export function lacksLogin({ installed, loggedIn }: Pick<Agent, 'installed' | 'loggedIn'>): boolean {
  return installed && loggedIn === 'no'
}

/** What a person types to log in; empty where nobody knows. */
export function loginLine({ loginCommand }: Pick<Agent, 'loginCommand'>): string {
  return loginCommand.map(quoted).join(' ')
}

/** Whether a login may be what an agent lacks that has failed. */
export function mayLogIn(agent: Pick<Agent, 'loggedIn' | 'loginCommand'> | undefined): boolean {
  return agent !== undefined && ['no', 'unknown'].includes(agent.loggedIn) && agent.loginCommand.length > 0
}
