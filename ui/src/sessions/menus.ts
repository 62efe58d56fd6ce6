/** The menu that starts workers in a session and shows hidden workers again. */
import type { Session } from '../api/types/sessions.ts'
import { openChanges } from '../diff/open-changes.ts'
import { lacksLogin } from '../home/login-text.ts'
import type { MenuGroup } from '../parts/Menu.svelte'
import type { App } from '../state/app.ts'
import * as layout from '../state/layout.ts'
import { viewOf } from '../workers/views.ts'
import { workerStateText } from '../workers/worker-state-text.ts'

/** Return the groups of the menu: workers to start, and workers without a tab. */
export function newWorkerMenu(app: App, session: Session): MenuGroup[] {
  const { page, layouts } = app
  const hidden = layouts.of(session).hidden.flatMap((id) => session.workers.find((worker) => worker.id === id) ?? [])
  return [
    {
      items: [
        { label: 'New terminal', icon: 'terminal', run: () => void page.addWorker(session, { type: 'terminal' }) },
        ...page.agents
          .filter((agent) => agent.installed)
          .map((agent) => ({ label: `New agent: ${agent.name}`, hint: lacksLogin(agent) ? 'no login found' : undefined, icon: 'agent' as const, run: () => void page.addWorker(session, { type: 'agent', agentId: agent.id }) })),
        { label: 'Changes', icon: 'diff', run: () => openChanges(app, session) },
      ],
    },
    {
      label: 'Hidden tabs',
      items: hidden.map((worker) => ({
        label: worker.name,
        hint: workerStateText(worker),
        icon: viewOf(worker)?.icon ?? 'document',
        run: () => layouts.change(session, (before) => layout.show(before, worker.id)),
      })),
    },
  ]
}
