/** The entry point: mount the application, or the replay of a share link. */
import './first.ts'
import { mount } from 'svelte'
import App from './App.svelte'
import { comeAsGuest } from './api/secret.ts'
import { Commands } from './commands/commands.svelte.ts'
import { everyCommand, passingCommands } from './commands/everything.ts'
import { installWorker } from './shell/install.ts'
import { ChangesOfSessions } from './state/changes.svelte.ts'
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
if (shared) void showGuest(shared)
else showHouse()
if (import.meta.env.PROD) void installWorker()

async function showGuest({ sessionId, token }: { sessionId: string; token: string }): Promise<void> {
  comeAsGuest(token)
  const { default: Guest } = await import('./replay/Guest.svelte')
  mount(Guest, { target: root(), props: { sessionId } })
}

function showHouse(): void {
  forgetOld()
  const app = { page: new Page(), view: new View(), commands: new Commands(), layouts: new Layouts(), changes: new ChangesOfSessions() }
  app.commands.add(() => everyCommand(app))
  app.commands.add(() => passingCommands(app))
  mount(App, { target: root(), props: { app } })
  void app.page.start()
}

function root(): HTMLElement {
  return document.getElementById('app') as HTMLElement
}
