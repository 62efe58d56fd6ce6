/** Read modes, models, options and commands from what an agent reports of its session, and prepare them for display. */
import type { SettingChange } from '../api/conversation-api.ts'
import type { Settings } from '../state/conversation.ts'
import { asObject, asText } from './tool-call-text.ts'

/** A selector for one setting of an agent. */
export interface SettingSelector {
  label: string
  value: string
  values: { value: string; name: string; description: string }[]
  choice: (value: string) => SettingChange
}

export interface Command {
  name: string
  description: string
}

/** Return the selectors for the mode, the model and the other options that an agent offers. */
export function selectorsOf(settings: Settings | null): SettingSelector[] {
  const modes = choicesSelector('Mode', settings?.modes, 'currentModeId', 'availableModes', 'id', (value) => ({ kind: 'mode', value }))
  const models = choicesSelector('Model', settings?.models, 'currentModelId', 'availableModels', 'modelId', (value) => ({ kind: 'model', value }))
  const usedIds = new Set([...(modes ? ['mode'] : []), ...(models ? ['model'] : [])])
  const options = (settings?.configOptions ?? []).map((option) => optionSelector(option, usedIds))
  return [modes, models, ...options].filter((selector) => selector !== undefined)
}

/** Return the commands that an agent offers, without their leading slash. */
export function commandsOf(settings: Settings | null): Command[] {
  const found = (settings?.commands ?? []).map((command) => {
    const { name, description } = asObject(command)
    return { name: asText(name).replace(/^\//, ''), description: asText(description) }
  })
  return found.filter(({ name }) => name)
}

/** Return the commands that complete a message that begins with `/`: prefix matches first, at most 12. */
export function completions(commands: readonly Command[], text: string): Command[] {
  const typed = /^\/(\S*)$/.exec(text)?.[1]?.toLowerCase()
  if (typed === undefined) return []
  const starting = commands.filter(({ name }) => name.toLowerCase().startsWith(typed))
  const containing = commands.filter(({ name }) => !starting.some((each) => each.name === name) && name.toLowerCase().includes(typed))
  return [...starting, ...containing].slice(0, 12)
}

/** Return the selector for the modes or models of an agent, or undefined if there are none. */
function choicesSelector(label: string, reported: unknown, current: string, available: string, id: string, choice: SettingSelector['choice']): SettingSelector | undefined {
  const choices = asObject(reported)
  const values = valuesOf(choices[available], id)
  return values.length ? { label, value: asText(choices[current]), values, choice } : undefined
}

/** Return the selector for an option, or undefined if it is invalid or another selector has the same id. */
function optionSelector(reported: unknown, usedIds: Set<string>): SettingSelector | undefined {
  const { id, name, category, type, currentValue, options } = asObject(reported)
  const key = asText(id)
  if (!key || usedIds.has(key) || usedIds.has(asText(category))) return undefined
  if (type === 'boolean' || typeof currentValue === 'boolean') {
    const values = [
      { value: 'true', name: 'on', description: '' },
      { value: 'false', name: 'off', description: '' },
    ]
    return { label: asText(name) || key, value: String(currentValue), values, choice: (value) => ({ kind: 'option', id: key, value: value === 'true' }) }
  }
  const values = valuesOf(options, 'value')
  return values.length ? { label: asText(name) || key, value: asText(currentValue), values, choice: (value) => ({ kind: 'option', id: key, value }) } : undefined
}

/** Return the values of a setting from a list that may have groups. */
function valuesOf(reported: unknown, id: string): SettingSelector['values'] {
  const flat = (Array.isArray(reported) ? reported : []).flatMap((each) => {
    const group = asObject(each).options
    return Array.isArray(group) ? group : [each]
  })
  const values = flat.map((each) => {
    const { name, description, [id]: value } = asObject(each)
    return { value: asText(value), name: asText(name) || asText(value), description: asText(description) }
  })
  return values.filter(({ value }) => value)
}
