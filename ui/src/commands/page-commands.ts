/** Define the commands of the page. */
import type { Session } from '../api/types/sessions.ts'
import type { Worker } from '../api/types/workers.ts'
import { panels } from '../panels/panels.ts'
import { isNarrow } from '../parts/narrow.ts'
import { askToDelete, closeTab, runsProgram } from '../sessions/actions.ts'
import { newWorkerMenu } from '../sessions/menus.ts'
import type { App } from '../state/app.ts'
import { sortedByNeed } from '../state/attention.ts'
import * as layout from '../state/layout.ts'
import { SECTIONS, type Section } from '../state/route.ts'
import { canStartAgain, tabWorkers } from '../state/tab-workers.ts'
import { setTheme, theme } from '../state/theme.ts'
import type { Command } from './commands.svelte.ts'

/** Return the commands that always exist; the help dialog and the settings list them. */
export function permanentCommands(app: App): Command[] {
  return [...navigationCommands(app), ...sessionCommands(app), ...workerCommands(app), ...viewCommands(app)].map((command) => ({ listed: true, ...command }))
}

/** Return the commands for the present sessions and workers, and for workers that can be started. */
export function currentCommands(app: App): Command[] {
  return [...goToSessions(app), ...goToWorkers(app), ...startCommands(app)]
}

function navigationCommands({ page }: App): Command[] {
  return [
    { id: 'go.home', title: 'Home', group: 'Go to', icon: 'home', keys: 'Mod+Shift+H', run: () => page.show({ view: 'home' }) },
    { id: 'go.next', title: 'Next session that needs you', group: 'Go to', icon: 'right', keys: 'Mod+J', run: () => goToNextWaiting(page) },
    { id: 'go.inbox', title: 'Inbox: requests that wait for you', group: 'Go to', icon: 'inbox', keys: 'Mod+I', hint: 'permissions questions approve', run: () => page.show({ view: 'inbox' }) },
    { id: 'go.search', title: 'Search all sessions', group: 'Go to', icon: 'search', keys: 'Mod+Shift+F', hint: 'find history', run: () => page.show({ view: 'search', query: '' }) },
    { id: 'go.usage', title: 'Usage: tokens and cost', group: 'Go to', icon: 'chart', run: () => page.show({ view: 'usage' }) },
    { id: 'go.settings', title: 'Settings', group: 'Go to', icon: 'settings', keys: 'Mod+,', run: () => page.show({ view: 'settings', section: 'appearance' }) },
    ...SECTIONS.slice(1).map((section) => ({
      id: `go.settings.${section}`,
      title: `Settings: ${SECTION_NAMES[section]}`,
      group: 'Go to' as const,
      icon: 'settings' as const,
      listed: false,
      run: () => page.show({ view: 'settings', section }),
    })),
    ...Array.from({ length: 9 }, (_, n): Command => ({
      id: `go.session.${n + 1}`,
      title: `Session ${n + 1} of the list`,
      group: 'Go to',
      keys: `Mod+${n + 1}`,
      when: () => activeSessions(page)[n] !== undefined,
      run: () => page.show({ view: 'session', sessionId: activeSessions(page)[n]?.id ?? '' }),
    })),
  ]
}

export const SECTION_NAMES: Record<Section, string> = {
  appearance: 'Appearance',
  keys: 'Keys',
  notifications: 'Notifications',
  agents: 'Agents',
  rules: 'Permission rules',
  sandbox: 'Sandbox',
  repositories: 'Repositories',
  worktrees: 'Worktrees',
  shares: 'Share links',
  devices: 'Devices',
  tokens: 'Tokens',
  transfer: 'Import and export',
}

function sessionCommands(app: App): Command[] {
  const { page, view, archiving } = app
  const here = () => page.session
  const isActive = () => page.session?.status === 'active'
  return [
    { id: 'session.new', title: 'New session', group: 'Session', icon: 'plus', keys: 'Alt+N', run: () => (view.overlay = 'new') },
    { id: 'session.rename', title: 'Rename session', group: 'Session', icon: 'edit', when: () => !!here(), run: () => (view.overlay = 'rename') },
    { id: 'session.replay', title: 'Replay this session', group: 'Session', icon: 'history', when: () => !!here(), run: () => ifDefined(here(), ({ id }) => page.show({ view: 'replay', sessionId: id })) },
    { id: 'session.share', title: 'Share session by a link', group: 'Session', icon: 'link', when: () => !!here(), run: () => (view.overlay = 'share') },
    { id: 'session.export', title: 'Export session', group: 'Session', icon: 'download', hint: 'download recording markdown', when: () => !!here(), run: () => (view.overlay = 'export') },
    { id: 'session.archive', title: 'Archive session', group: 'Session', icon: 'archive', keys: 'Mod+Shift+X', hint: 'end close complete kill', when: isActive, run: () => ifDefined(here(), (session) => archiving.begin(session)) },
    { id: 'session.undo', title: 'Undo: do not archive the session', group: 'Session', icon: 'back', when: () => !!archiving.pending, run: () => archiving.undo() },
    { id: 'session.continue', title: 'Continue archived session', group: 'Session', icon: 'play', hint: 'resume reopen', when: () => !!here() && !isActive(), run: () => ifDefined(here(), (session) => void page.continueSession(session)) },
    { id: 'session.delete', title: 'Delete session permanently', group: 'Session', icon: 'trash', when: () => !!here() && !isActive(), run: () => ifDefined(here(), (session) => askToDelete(app, session)) },
  ]
}

function workerCommands(app: App): Command[] {
  const { page, view, layouts } = app
  const here = () => page.session
  const change = (update: (before: layout.Layout) => layout.Layout) => ifDefined(here(), (session) => layouts.change(session, update))
  const active = (condition: (worker: Worker, session: Session) => boolean = () => true) => {
    const [session, worker] = [page.session, page.session && layouts.active(page.session)]
    return session && worker && condition(worker, session) ? worker : undefined
  }
  const hasPanes = () => !!here() && !isNarrow()
  return [
    { id: 'worker.new', title: 'New agent or terminal in this session', group: 'Tabs', icon: 'plus', keys: 'Alt+T', when: () => page.session?.status === 'active', run: () => view.openPalette('New ') },
    { id: 'worker.close', title: 'Close tab', group: 'Tabs', icon: 'close', keys: 'Alt+W', when: () => !!active(), run: () => ifDefined(here(), (session) => ifDefined(active(), (worker) => closeTab(app, session, worker))) },
    { id: 'worker.stop', title: 'Stop agent or terminal', group: 'Tabs', icon: 'stop', hint: 'kill end', when: () => !!active(runsProgram), run: () => ifDefined(active(), (worker) => void page.stop(worker)) },
    { id: 'worker.restart', title: 'Start again', group: 'Tabs', icon: 'restart', when: () => !!active((worker, session) => session.status === 'active' && canStartAgain(session, worker)), run: () => ifDefined(active(), (worker) => void page.restart(worker)) },
    { id: 'worker.next', title: 'Next tab', group: 'Tabs', icon: 'right', keys: 'Mod+]', when: () => !!active(), run: () => change((before) => stepTab(before, 1)) },
    { id: 'worker.previous', title: 'Previous tab', group: 'Tabs', icon: 'left', keys: 'Mod+[', when: () => !!active(), run: () => change((before) => stepTab(before, -1)) },
    { id: 'tab.focus', title: 'Move the focus to the tabs', group: 'Tabs', icon: 'right', keys: 'Mod+F6', hint: 'leave terminal', when: () => !!active(), run: () => ifDefined(active(), focusTab) },
    { id: 'pane.right', title: 'Split right', group: 'Tabs', icon: 'splitRight', keys: 'Mod+D', when: hasPanes, run: () => change((before) => splitFocused(before, 'row')) },
    { id: 'pane.down', title: 'Split down', group: 'Tabs', icon: 'splitDown', keys: 'Mod+Shift+D', when: hasPanes, run: () => change((before) => splitFocused(before, 'column')) },
    { id: 'pane.next', title: 'Next pane', group: 'Tabs', icon: 'splitRight', keys: 'Mod+E', when: hasPanes, run: () => change(nextPane) },
    { id: 'pane.close', title: 'Close pane', group: 'Tabs', icon: 'close', when: hasPanes, run: () => change((before) => layout.closePane(before, before.focused)) },
  ]
}

function viewCommands({ page, view }: App): Command[] {
  const toggle = (id: string) => (view.panel = view.panel === id ? null : id)
  return [
    { id: 'view.palette', title: 'Command palette', group: 'View', icon: 'search', keys: 'Mod+K', run: () => (view.overlay === 'palette' ? view.close() : view.openPalette()) },
    { id: 'view.sidebar', title: 'Sidebar', group: 'View', icon: 'panelLeft', keys: 'Mod+B', run: () => (view.sidebar = !view.sidebar) },
    { id: 'view.panel', title: 'Panel on the right', group: 'View', icon: 'panelRight', keys: 'Mod+Shift+B', when: () => !!page.session, run: () => (view.panel = view.panel ? null : (panels[0]?.id ?? null)) },
    ...panels.map((panel): Command => ({ id: `panel.${panel.id}`, title: `Panel: ${panel.label}`, group: 'View', icon: panel.icon, ...PANEL_KEYS[panel.id], when: () => !!page.session, run: () => toggle(panel.id) })),
    { id: 'view.theme', title: 'Switch between light and dark', group: 'View', icon: 'dark', run: () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark') },
    { id: 'view.theme.system', title: 'Use the light or dark theme of the system', group: 'View', icon: 'system', when: () => theme() !== 'system', run: () => setTheme('system') },
    { id: 'help.keys', title: 'Keys and help', group: 'Help', icon: 'keyboard', keys: 'Mod+/', also: '?', run: () => (view.overlay = view.overlay === 'help' ? undefined : 'help') },
  ]
}

/** Move the focus to the tab of a worker: a terminal keeps the Tab key for its program. */
function focusTab(worker: Worker): void {
  document.querySelector<HTMLElement>(`[data-worker="${worker.id}"]`)?.focus()
}

/** Shortcuts of panels, by panel id. */
const PANEL_KEYS: Record<string, Pick<Command, 'keys'>> = { files: { keys: 'Mod+P' } }

function goToSessions({ page }: App): Command[] {
  return activeSessions(page).map((session) => ({
    id: `session:${session.id}`,
    title: session.title,
    group: 'Go to',
    icon: 'chat',
    hint: `${page.attention(session).label} · ${session.locationPath}`,
    run: () => page.show({ view: 'session', sessionId: session.id }),
  }))
}

function goToWorkers({ page, layouts }: App): Command[] {
  const { session } = page
  return (session ? tabWorkers(session) : []).map((worker) => ({
    id: `worker:${worker.id}`,
    title: `Show ${worker.name}`,
    group: 'Tabs',
    icon: worker.type === 'agent' ? 'agent' : 'terminal',
    run: () => ifDefined(session, (here) => layouts.change(here, (before) => layout.show(before, worker.id))),
  }))
}

/** Return a command for each kind of terminal and agent that can be started in the shown session. */
function startCommands(app: App): Command[] {
  const { session } = app.page
  if (session?.status !== 'active') return []
  const [start] = newWorkerMenu(app, session)
  return (start?.items ?? []).map((item) => ({ id: `start:${item.label}`, title: item.label, group: 'Tabs', icon: item.icon ?? 'plus', run: item.run }))
}

/** Return the active sessions in the order of the sidebar. */
function activeSessions(page: App['page']): App['page']['sessions'] {
  return sortedByNeed(page.sessions.filter((session) => session.status === 'active'), (session) => page.attention(session).need)
}

/** Show another session that asks, has failed or has finished, the most urgent first. */
function goToNextWaiting(page: App['page']): void {
  const waiting = activeSessions(page).filter((session) => ['asking', 'error', 'done'].includes(page.attention(session).need))
  const next = waiting.find((session) => session.id !== page.session?.id)
  if (next) page.show({ view: 'session', sessionId: next.id })
}

/** Show the tab that is `by` tabs after the shown one, in a circle. */
function stepTab(before: layout.Layout, by: number): layout.Layout {
  const pane = layout.focusedPane(before)
  const next = pane.tabs.at((pane.tabs.indexOf(pane.active ?? '') + by) % pane.tabs.length)
  return next === undefined ? before : layout.show(before, next)
}

function nextPane(before: layout.Layout): layout.Layout {
  const all = layout.panes(before.root)
  const next = all[(all.findIndex((pane) => pane.id === before.focused) + 1) % all.length]
  return next ? layout.focus(before, next.id) : before
}

/** Split the focused pane. The shown tab stays; the first other tab moves to the new pane, which is empty if there is none. */
function splitFocused(before: layout.Layout, direction: 'row' | 'column'): layout.Layout {
  const pane = layout.focusedPane(before)
  const other = pane.tabs.find((id) => id !== pane.active)
  return layout.split(before, pane.id, direction, other)
}

/** Run an action unless the value is undefined. */
function ifDefined<T>(thing: T | undefined, act: (thing: T) => void): void {
  if (thing !== undefined) act(thing)
}
