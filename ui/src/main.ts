/** The entry point: mount the application, or the replay of a share link. */
import './first.ts'
import { mount } from 'svelte'
import App from './App.svelte'
import { useShareToken } from './api/secret.ts'
import { Commands } from './commands/commands.svelte.ts'
import { permanentCommands, currentCommands } from './commands/everything.ts'
import { registerServiceWorker } from './shell/install.ts'
import { BranchSummaries } from './state/changes.svelte.ts'
import { Layouts } from './state/layouts.svelte.ts'
import { Page } from './state/page.svelte.ts'
import { forgetOld } from './state/remembered.ts'
import { sharedSession } from './state/route.ts'
import { startTheme } from './state/theme.ts'
import { View } from './state/view.svelte.ts'
import './style/tokens.css'
import './style/base.css'

startTheme()
const shared = sharedSession(location.hash)
if (shared) void showReplay(shared)
else showApplication()
if (import.meta.env.PROD) void registerServiceWorker()

async function showReplay({ sessionId, token }: { sessionId: string; token: string }): Promise<void> {
  useShareToken(token)
  const { default: Guest } = await import('./replay/Guest.svelte')
  mount(Guest, { target: root(), props: { sessionId } })
}

function showApplication(): void {
  forgetOld()
  const app = { page: new Page(), view: new View(), commands: new Commands(), layouts: new Layouts(), branchSummaries: new BranchSummaries() }
  app.commands.add(() => permanentCommands(app))
  app.commands.add(() => currentCommands(app))
  mount(App, { target: root(), props: { app } })
  void app.page.start()
}

function root(): HTMLElement {
  return document.getElementById('app') as HTMLElement
}
