/** Fold the events of one agent into its turn, settings, plan, open requests and usage; the counterpart of `domain/conversation_state.py`. */
import type { SessionEvent } from '../api/types/events.ts'

export interface Turn {
  readonly promptId: string
  readonly since: string
  readonly cancelling: boolean
}

/** Modes, models, options and commands as the agent reports them. */
export interface Settings {
  readonly acpSessionId: string
  readonly modes: unknown
  readonly models: unknown
  readonly configOptions: readonly unknown[] | null
  readonly commands: readonly unknown[]
}

export interface Usage {
  readonly used: number | null
  readonly size: number | null
  readonly cost: unknown
  readonly turn: unknown
}

/** An open permission or question: the data of its event and its time. */
export interface OpenRequest {
  readonly fact: Readonly<Record<string, unknown>>
  readonly since: string
}

export interface Conversation {
  readonly turn: Turn | null
  readonly settings: Settings | null
  readonly plan: readonly unknown[]
  readonly permissions: Readonly<Record<string, OpenRequest>>
  readonly questions: Readonly<Record<string, OpenRequest>>
  readonly usage: Usage
}

export const EMPTY_CONVERSATION: Conversation = {
  turn: null,
  settings: null,
  plan: [],
  permissions: {},
  questions: {},
  usage: { used: null, size: null, cost: null, turn: null },
}

/** Return the time of the oldest open permission or question, or undefined. */
export function openSince({ permissions, questions }: Conversation): string | undefined {
  return [...Object.values(permissions), ...Object.values(questions)].map(({ since }) => since).toSorted()[0]
}

const EMPTY_SETTINGS: Settings = { acpSessionId: '', modes: null, models: null, configOptions: null, commands: [] }

/** The event types that determine the state of a conversation; their newest events are enough to know it without the whole history. */
export const SETTING_TYPES = ['agent_session', 'conversation_reset', 'mode_changed', 'model_changed', 'config_changed', 'commands_available']
export const TURN_TYPES = ['turn_start', 'turn_end', 'plan', 'usage', 'permission', 'question', 'worker_spawning', 'worker_exited', 'worker_failed', 'worker_terminated']

/** Return the state after one more event. */
export function foldConversation(state: Conversation, { type, data, timestamp }: SessionEvent): Conversation {
  switch (type) {
    case 'plan':
      return { ...state, plan: asList(data.entries) }
    case 'permission':
      return { ...state, permissions: updateOpen(state.permissions, data, timestamp) }
    case 'question':
      return { ...state, questions: updateOpen(state.questions, data, timestamp) }
    case 'turn_start':
      return { ...state, turn: { promptId: String(data.promptId), since: timestamp, cancelling: false } }
    case 'turn_end':
      return { ...state, turn: null }
    case 'notice_sent':
      if (!state.turn || data.method !== 'session/cancel') return state
      return { ...state, turn: { ...state.turn, cancelling: true } }
    case 'usage':
      return { ...state, usage: mergeUsage(state.usage, data) }
    case 'conversation_reset':
      return EMPTY_CONVERSATION
    case 'agent_session':
      return { ...state, settings: settingsFrom(state.settings, data) }
    case 'mode_changed':
      return withSettings(state, { modes: withCurrent(state.settings?.modes, 'currentModeId', data.modeId) })
    case 'model_changed':
      return withSettings(state, { models: withCurrent(state.settings?.models, 'currentModelId', data.modelId) })
    case 'config_changed':
      return withSettings(state, { configOptions: asList(data.configOptions) })
    case 'commands_available':
      return withSettings(state, { commands: asList(data.commands) })
    case 'worker_spawning':
    case 'worker_exited':
    case 'worker_failed':
    case 'worker_terminated': // the turn and the open requests end with the process
      return { ...EMPTY_CONVERSATION, settings: state.settings, plan: state.plan, usage: state.usage }
    default:
      return state
  }
}

/** Add an open request, or remove an answered one. */
function updateOpen(open: Conversation['permissions'], fact: Record<string, unknown>, since: string): Conversation['permissions'] {
  const id = String(fact.id)
  if (fact.status === 'pending') return { ...open, [id]: { fact, since } }
  const { [id]: _, ...rest } = open
  return rest
}

/** Return the settings that a new session of the agent reports. */
function settingsFrom(before: Settings | null, data: Record<string, unknown>): Settings {
  return {
    acpSessionId: String(data.acpSessionId),
    modes: data.modes ?? null,
    models: data.models ?? null,
    configOptions: Array.isArray(data.configOptions) ? data.configOptions : null,
    commands: before?.commands ?? [],
  }
}

function withSettings(state: Conversation, change: Partial<Settings>): Conversation {
  return { ...state, settings: { ...(state.settings ?? EMPTY_SETTINGS), ...change } } // some agents report settings before their session exists
}

/** Return modes or models with another current value, also if none were known. */
function withCurrent(choices: unknown, key: string, value: unknown): unknown {
  const before = typeof choices === 'object' && choices !== null && !Array.isArray(choices) ? choices : {}
  return { ...before, [key]: value }
}

/** Return the usage with the values that an event reports; it may report only some. */
function mergeUsage(usage: Usage, data: Record<string, unknown>): Usage {
  return {
    used: (data.used as number | undefined) ?? usage.used,
    size: (data.size as number | undefined) ?? usage.size,
    cost: data.cost ?? usage.cost,
    turn: data.turn ?? usage.turn,
  }
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
