/** What the entries of a conversation need of where they stand: a talk that goes on, or a moment of the past. */
import type { Entries } from './chat.ts'

export interface Telling {
  /** All that is known, for what an entry refers to. */
  readonly window: { readonly entries: Entries }
  /** The name of the agent. */
  readonly name: string
  /** The directory the agent works in. */
  readonly workspace: string | undefined
  readonly calls: {
    image(id: string): Promise<Blob>
    /** What a terminal of the session has printed. */
    output(terminalId: string): Promise<Blob>
  }
  /** Absent where nothing can be answered any more. */
  readonly permit?: (permissionId: string, optionId: string) => Promise<boolean>
  readonly answer?: (questionId: string, action: 'accept' | 'decline', content?: Record<string, unknown>) => Promise<boolean>
}
