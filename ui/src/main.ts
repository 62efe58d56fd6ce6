/** The entry point: mount the application, or the replay of a share link. */
import './prefetch.ts'
import { mount } from 'svelte'
import App from './App.svelte'
import { useShareToken } from './api/credentials.ts'
import { Commands } from './commands/commands.svelte.ts'
import { permanentCommands, currentCommands } from './commands/page-commands.ts'
import { registerServiceWorker } from './shell/service-worker.ts'
import { Archiving } from './state/archiving.svelte.ts'
import { BranchSummaries } from './state/branch-summaries.svelte.ts'
import { Layouts } from './state/layouts.svelte.ts'
import { Page } from './state/page.svelte.ts'
import { forgetOld } from './state/remembered.ts'
import { sharedSession } from './state/route.ts'
import { startTheme } from './state/theme.ts'
import { ViewState } from './state/view-state.svelte.ts'
import './style/tokens.css'
import './style/base.css'

startTheme()
const shared = sharedSession(location.hash)
if (shared) void showReplay(shared)
else showApplication()
if (import.meta.env.PROD) void registerServiceWorker()

async function showReplay({ sessionId, token }: { sessionId: string; token: string }): Promise<void> {
  useShareToken(token)
  const { default: SharedReplay } = await import('./replay/SharedReplay.svelte')
  mount(SharedReplay, { target: root(), props: { sessionId } })
}

function showApplication(): void {
  forgetOld()
  const view = new ViewState()
  const page = new Page((question) => view.ask(question))
  const archiving = new Archiving((session) => void page.archive(session))
  const app = { page, view, commands: new Commands(), layouts: new Layouts(), branchSummaries: new BranchSummaries(), archiving }
  app.commands.add(() => permanentCommands(app))
  app.commands.add(() => currentCommands(app))
  mount(App, { target: root(), props: { app } })
  void app.page.start()
}

function root(): HTMLElement {
  return document.getElementById('app') as HTMLElement
}
