import { expect, test } from 'vitest'
import { sandboxText } from './sandbox-text.ts'

test('each level has a text, and a worker without a level has none', () => {
  expect(sandboxText({ sandbox: 'open' })).toBe('no sandbox')
  expect(sandboxText({ sandbox: 'workspace' })).toBe('sandbox: its workspace')
  expect(sandboxText({ sandbox: 'sealed' })).toBe('sandbox: its workspace, no network')
  expect(sandboxText({ sandbox: null })).toBe('')
})
