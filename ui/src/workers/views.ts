/**
 * The view of each kind of worker. A new kind is one entry here; its component is loaded on first use and gets the
 * session, the worker and a function that restarts the worker. The chat is loaded with the page, because nearly every
 * session begins with one.
 */
import type { Component } from 'svelte'
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import Chat from '../chat/Chat.svelte'
import type { IconName } from '../parts/icons.ts'

export interface ViewProps {
  session: Session
  worker: Worker
  /** Start the worker again; undefined if its session is archived. */
  onrestart: (() => void) | undefined
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
  web: { label: 'Web page', icon: 'preview', load: () => import('../preview/WebView.svelte') },
  terminal: { label: 'Terminal', icon: 'terminal', load: () => import('./TerminalView.svelte') },
} satisfies Record<string, WorkerView>

/** Return the view of a worker, or undefined for an unknown kind. An agent that runs in a terminal has the view of a terminal. */
export function viewOf(worker: Pick<Worker, 'type' | 'agentKind'>): WorkerView | undefined {
  if (worker.type === 'terminal') return views.terminal
  if (worker.type === 'diff') return views.diff
  if (worker.type === 'markdown') return views.document
  if (worker.type === 'web') return views.web
  if (worker.type !== 'agent') return undefined
  return worker.agentKind === 'pty' ? { ...views.terminal, icon: 'agent' } : views.chat
}
