/** The shared state of the application, which every component gets by `useApp`. */
import { createContext } from 'svelte'
import type { Commands } from '../commands/commands.svelte.ts'
import type { Archiving } from './archiving.svelte.ts'
import type { BranchSummaries } from './branch-summaries.svelte.ts'
import type { Layouts } from './layouts.svelte.ts'
import type { Page } from './page.svelte.ts'
import type { ViewState } from './view-state.svelte.ts'

export interface App {
  page: Page
  view: ViewState
  commands: Commands
  layouts: Layouts
  branchSummaries: BranchSummaries
  archiving: Archiving
}

/** Get the state in a component; main.ts creates it and App.svelte provides it. */
export const [useApp, provideApp] = createContext<App>()
