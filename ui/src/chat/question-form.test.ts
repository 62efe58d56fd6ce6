import { expect, test } from 'vitest'
import { answersOf, contentOf, fieldsOf } from './question-form.ts'

const SCHEMA = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Your name' },
    age: { type: 'integer' },
    colour: { type: 'string', enum: ['red', 'blue'] },
    sure: { type: 'boolean' },
  },
  required: ['name'],
}

test('each property is a field of its kind', () => {
  expect(fieldsOf(SCHEMA).map(({ label, kind, required }) => [label, kind, required])).toEqual([
    ['Your name', 'text', true],
    ['age', 'number', false],
    ['colour', 'choice', false],
    ['sure', 'boolean', false],
  ])
})

test('sent values have the types of the schema, and empty fields are left out', () => {
  expect(contentOf(fieldsOf(SCHEMA), { name: 'Ada', age: '36', colour: '' })).toEqual({ name: 'Ada', age: 36, sure: false })
})

test('a choice is sent as the form has it', () => {
  const fields = fieldsOf({ properties: { port: { type: 'integer', enum: [80, 443] }, share: { enum: ['on', true, null] } } })
  expect(contentOf(fields, { port: '443', share: 'true' })).toEqual({ port: 443, share: true })
  expect(contentOf(fields, { port: '', share: 'on' })).toEqual({ share: 'on' })
})

test('default values are sent unless the user changes them', () => {
  const fields = fieldsOf({ properties: { port: { type: 'integer', default: 80 }, host: { default: 'here' }, sure: { type: 'boolean', default: true }, odd: { default: [] } } })
  expect(fields.map(({ initial }) => initial)).toEqual(['80', 'here', true, ''])
  expect(contentOf(fields, {})).toEqual({ port: 80, host: 'here', sure: true })
  expect(contentOf(fields, { port: '', host: 'there', sure: false })).toEqual({ host: 'there', sure: false })
})

test('answers are shown with the labels of the form', () => {
  const fields = fieldsOf(SCHEMA)
  expect(answersOf(fields, { name: 'Ada', age: 36, sure: true, secret: 'x' })).toEqual([
    { name: 'name', label: 'Your name', text: 'Ada' },
    { name: 'age', label: 'age', text: '36' },
    { name: 'sure', label: 'sure', text: 'yes' },
  ])
  for (const none of [undefined, null, 'x', {}]) expect(answersOf(fields, none)).toEqual([])
})

test('an invalid schema has no fields', () => {
  for (const schema of [undefined, null, 'x', {}, { properties: null }, { properties: { x: null } }]) fieldsOf(schema)
  expect(fieldsOf({ properties: 7 })).toEqual([])
})
