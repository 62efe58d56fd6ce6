/** The interface that the components for entries need from a conversation, live or in a replay. */
import type { Entries } from './entries.ts'

export interface ConversationContext {
  /** All loaded entries, for entries that refer to others. */
  readonly window: { readonly entries: Entries }
  /** The name of the agent. */
  readonly name: string
  /** The directory the agent works in. */
  readonly workspace: string | undefined
  readonly calls: {
    image(id: string): Promise<Blob>
    /** Return the output of a terminal of the session. */
    output(terminalId: string): Promise<Blob>
  }
  /** Answer a permission; absent if it cannot be answered, as in a replay. */
  readonly permit?: (permissionId: string, optionId: string) => Promise<boolean>
  readonly answer?: (questionId: string, action: 'accept' | 'decline', content?: Record<string, unknown>) => Promise<boolean>
}
