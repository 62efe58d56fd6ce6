/** What of a session can be looked at by itself, decided for all of its moments: tabs do not come and go while it plays. */
import type { TerminalLine, Timeline } from '../api/types/timeline.ts'
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

/** At least one, what matters most first. */
export function panesOf(workers: readonly Worker[], timeline: Timeline): Pane[] {
  const panes = [
    ...(conversing(workers).length ? [CONVERSATION] : []),
    ...(spoken(timeline).length ? [TERMINALS] : []),
    ...(mayHaveChanged(workers, timeline) ? [CHANGES] : []),
  ]
  return panes.length ? panes : [CONVERSATION]
}

export function conversing(workers: readonly Worker[]): Worker[] {
  return workers.filter(({ type, agentKind }) => type === 'agent' && agentKind !== 'pty')
}

/** The terminals that ever said something. */
export function spoken({ terminals }: Timeline): TerminalLine[] {
  return terminals.filter(({ start, end }) => end > start)
}

/** Changes are told by who watches the workspace, and by what agents do or ask to do. */
function mayHaveChanged(workers: readonly Worker[], { markers }: Timeline): boolean {
  return workers.some(({ type }) => type === 'diff') || markers.some(({ kind }) => kind === 'tool' || kind === 'permission')
}
