/**
 * The panels on the right of a session. A new panel is one entry here; its component is loaded when it is
 * first opened and gets the session and the shown worker.
 */
import type { Component } from 'svelte'
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import type { IconName } from '../parts/icons.ts'

export interface PanelProps {
  session: Session
  worker: Worker | undefined
}

export interface Panel {
  id: string
  label: string
  icon: IconName
  /** Whether the panel is wide, because it shows web pages. */
  wide?: boolean
  load: () => Promise<{ default: Component<PanelProps> }>
}

export const panels: readonly Panel[] = [
  { id: 'changes', label: 'Changes', icon: 'diff', load: () => import('../diff/ChangesPanel.svelte') },
  { id: 'files', label: 'Files', icon: 'files', load: () => import('../files/FilesPanel.svelte') },
  { id: 'preview', label: 'Preview', icon: 'preview', wide: true, load: () => import('../preview/PreviewPanel.svelte') },
  { id: 'plan', label: 'Plan', icon: 'plan', load: () => import('./Plan.svelte') },
  { id: 'details', label: 'Details', icon: 'info', load: () => import('./Details.svelte') },
]
