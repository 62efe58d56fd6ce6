/**
 * How each kind of worker is shown. A new kind is one entry here: its component is loaded when it is first
 * needed and gets the session, the worker, and a way to start the worker again. The chat comes with the page,
 * as nearly every session begins with one.
 */
import type { Component } from 'svelte'
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import Chat from '../chat/Chat.svelte'
import type { IconName } from '../parts/icons.ts'

export interface ViewProps {
  session: Session
  worker: Worker
  onrestart: () => void
}

export interface WorkerView {
  label: string
  icon: IconName
  load: () => Promise<{ default: Component<ViewProps> }>
}

export const views = {
  chat: { label: 'Agent', icon: 'agent', load: async () => ({ default: Chat }) },
  diff: { label: 'Changes', icon: 'diff', load: () => import('../diff/DiffView.svelte') },
  document: { label: 'Document', icon: 'document', load: () => import('../documents/DocumentView.svelte') },
  terminal: { label: 'Terminal', icon: 'terminal', load: () => import('./TerminalView.svelte') },
} satisfies Record<string, WorkerView>

/** An agent that lives in a terminal is shown as one. */
export function viewOf(worker: Pick<Worker, 'type' | 'agentKind'>): WorkerView | undefined {
  if (worker.type === 'terminal') return views.terminal
  if (worker.type === 'diff') return views.diff
  if (worker.type === 'markdown') return views.document
  if (worker.type !== 'agent') return undefined
  return worker.agentKind === 'pty' ? { ...views.terminal, icon: 'agent' } : views.chat
}
