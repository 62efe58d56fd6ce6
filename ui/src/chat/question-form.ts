/** Read the fields of a question's form from its JSON schema, and convert between field values and answers. */
/** One field of a form. */
export interface Field {
  name: string
  label: string
  kind: 'text' | 'number' | 'choice' | 'boolean'
  /** The values to choose from; the page shows each as text. */
  choices: unknown[]
  required: boolean
  /** The value before the user changes it. */
  initial: string | boolean
}

export type Values = Record<string, string | boolean>

/** Return the fields of a schema. A field of an unknown type is a text field; the agent then rejects an answer that it cannot use. */
export function fieldsOf(schema: unknown): Field[] {
  const { properties, required } = (schema ?? {}) as { properties?: Record<string, Record<string, unknown> | null>; required?: unknown }
  if (typeof properties !== 'object' || properties === null) return []
  return Object.entries(properties).map(([name, property]) => ({
    name,
    label: typeof property?.title === 'string' ? property.title : name,
    kind: fieldKind(property),
    choices: Array.isArray(property?.enum) ? property.enum : [],
    required: Array.isArray(required) && required.includes(name),
    initial: initialOf(property),
  }))
}

/** Return the given answers with the labels of their fields. */
export function answersOf(fields: readonly Field[], answer: unknown): { name: string; label: string; text: string }[] {
  const answers = (typeof answer === 'object' && answer !== null ? answer : {}) as Record<string, unknown>
  return fields.filter(({ name }) => Object.hasOwn(answers, name)).map(({ name, label }) => ({ name, label, text: answerText(answers[name]) }))
}

/** Return an answer of the user as text. */
function answerText(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Return the default value of a field. */
function initialOf(property: Record<string, unknown> | null): string | boolean {
  const value = property?.default
  if (fieldKind(property) === 'boolean') return value === true
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** Return the answer to send: numbers and choices with their type, and no value for empty fields. */
export function contentOf(fields: Field[], values: Values): Record<string, unknown> {
  const all = fields.map((field) => ({ field, value: values[field.name] ?? field.initial }))
  return Object.fromEntries(all.filter(({ value }) => value !== '').map(({ field, value }) => [field.name, valueOf(field, value)]))
}

/** Return the value to send for what the user entered in a field. */
function valueOf(field: Field, value: string | boolean): unknown {
  if (field.kind === 'choice') return field.choices.find((choice) => String(choice) === value)
  return field.kind === 'number' ? Number(value) : value
}

function fieldKind(property: Record<string, unknown> | null): Field['kind'] {
  if (Array.isArray(property?.enum)) return 'choice'
  if (property?.type === 'boolean') return 'boolean'
  return property?.type === 'number' || property?.type === 'integer' ? 'number' : 'text'
}
