/** Choose the panes of a replay for the whole session, so that tabs do not change while it plays. */
import type { TerminalTimeline, Timeline } from '../api/types/timeline.ts'
import type { Worker } from '../api/types/workers.ts'
import type { IconName } from '../parts/icons.ts'

export type PaneId = 'conversation' | 'terminals' | 'changes'

export interface Pane {
  readonly id: PaneId
  readonly label: string
  readonly icon: IconName
}

const CONVERSATION: Pane = { id: 'conversation', label: 'Conversation', icon: 'chat' }
const TERMINALS: Pane = { id: 'terminals', label: 'Terminals', icon: 'terminal' }
const CHANGES: Pane = { id: 'changes', label: 'Changes', icon: 'diff' }

/** Return the panes of a session, at least one, the most important first. */
export function panesOf(workers: readonly Worker[], timeline: Timeline): Pane[] {
  const panes = [
    ...(chatAgents(workers).length ? [CONVERSATION] : []),
    ...(terminalsWithOutput(timeline).length ? [TERMINALS] : []),
    ...(mayHaveChanged(workers, timeline) ? [CHANGES] : []),
  ]
  return panes.length ? panes : [CONVERSATION]
}

/** Return the agents that have a conversation, which excludes agents in a terminal. */
export function chatAgents(workers: readonly Worker[]): Worker[] {
  return workers.filter(({ type, agentKind }) => type === 'agent' && agentKind !== 'pty')
}

/** Return the terminals that have any output. */
export function terminalsWithOutput({ terminals }: Timeline): TerminalTimeline[] {
  return terminals.filter(({ start, end }) => end > start)
}

/** Return whether there may be changes to show: from a diff worker, or from tool calls and permission requests. */
function mayHaveChanged(workers: readonly Worker[], { markers }: Timeline): boolean {
  return workers.some(({ type }) => type === 'diff') || markers.some(({ kind }) => kind === 'tool' || kind === 'permission')
}
