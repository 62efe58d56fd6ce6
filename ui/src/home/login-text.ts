/** Text about the login of an agent. It is only a hint: a login may exist without a sign that the server can find. */
import type { Agent } from '../api/types/agents.ts'
import { shellQuote } from '../parts/shell-quote.ts'

/** Return whether an agent is installed and logged in, as text. */
export function installText({ installed, loggedIn }: Pick<Agent, 'installed' | 'loggedIn'>): string {
  if (!installed) return 'not installed'
  return { yes: 'logged in', no: 'no login found', unknown: 'installed', none: 'installed' }[loggedIn]
}

/** Return the agents in groups: those that can start at once, those without a login, and those that are not installed. */
export function agentGroups(agents: readonly Agent[]): { label: string; agents: Agent[] }[] {
  return [
    { label: 'Installed', agents: agents.filter((agent) => agent.installed && !lacksLogin(agent)) },
    { label: 'Installed, no login found', agents: agents.filter(lacksLogin) },
    { label: 'Not installed', agents: agents.filter((agent) => !agent.installed) },
  ].filter((group) => group.agents.length)
}

/** Return whether an agent is installed but no login to it was found. */
export function lacksLogin({ installed, loggedIn }: Pick<Agent, 'installed' | 'loggedIn'>): boolean {
  return installed && loggedIn === 'no'
}

/** Return the shell command that logs in to an agent, or an empty string if it is unknown. */
export function loginCommandLine({ loginCommand }: Pick<Agent, 'loginCommand'>): string {
  return loginCommand.map(shellQuote).join(' ')
}

/** Return whether an agent that failed may need a login, and the login command is known. */
export function mayNeedLogin(agent: Pick<Agent, 'loggedIn' | 'loginCommand'> | undefined): boolean {
  return agent !== undefined && ['no', 'unknown'].includes(agent.loggedIn) && agent.loginCommand.length > 0
}
