import { expect, test } from 'vitest'
import { titleWithoutKind, answeredBy, commandOf, inputOf, partsOf, pathsOf, pathWithin, imageAddress, escapeInvisible, callTitle } from './tool-call-text.ts'

const call = (more: object) => ({ toolCallId: 't', ...more })

test('a call is named by its title, else by its kind', () => {
  expect(callTitle(call({ title: 'Edit it', kind: 'edit' }))).toBe('Edit it')
  expect(callTitle(call({ kind: 'edit' }))).toBe('edit')
  expect(callTitle(undefined)).toBe('A tool')
})

test('a title does not repeat the kind in front of it', () => {
  expect(titleWithoutKind(call({ title: 'Edit a.py', kind: 'edit' }))).toBe('a.py')
  expect(titleWithoutKind(call({ title: 'Editing a.py', kind: 'edit' }))).toBe('Editing a.py')
  expect(titleWithoutKind(call({ title: 'ls -l', kind: 'execute' }))).toBe('ls -l')
})

test('invisible characters are written as code points', () => {
  expect(escapeInvisible('ls \u202egpj.exe')).toBe('ls ⟨U+202E⟩gpj.exe')
  expect(escapeInvisible('rm\u200b -rf\ttab\nline')).toBe('rm⟨U+200B⟩ -rf\ttab\nline')
  expect(callTitle(call({ title: 'Read\u001b[8m a file\n\n\n' }))).toBe('Read⟨U+001B⟩[8m a file')
})

test('a command is shown exactly, whatever the title is', () => {
  expect(commandOf(call({ title: 'Look', rawInput: { command: 'rm -rf ~ # look' } }))).toBe('rm -rf ~ # look')
  expect(commandOf(call({ rawInput: { command: ['bash', '-c', "it's"] } }))).toBe(String.raw`bash -c 'it'\''s'`)
  expect(commandOf(call({ rawInput: { command: 'git', args: ['push', '--force now'] } }))).toBe("git push '--force now'")
  expect(commandOf(call({ rawInput: 'ls' }))).toBeUndefined()
})

test('the input of a tool beside its command is shown too', () => {
  expect(inputOf(call({ rawInput: { command: 'ls', cwd: '/etc' } }))).toBe('{\n  "cwd": "/etc"\n}')
  expect(inputOf(call({ rawInput: { command: 'ls' } }))).toBe('')
  expect(inputOf(call({ rawInput: 'whatever' }))).toBe('whatever')
})

test('changes, texts, terminals and images are parts; unknown content is plain', () => {
  const content = [
    { type: 'diff', path: '/a', oldText: null, newText: 'x' },
    { type: 'content', content: { type: 'text', text: 'hi' } },
    { type: 'terminal', terminalId: 'w2' },
    { type: 'content', content: { type: 'image', mimeType: 'image/png', data: 'AAAA' } },
    { type: 'weather' },
    null,
  ]
  expect(partsOf(call({ content })).map(({ kind }) => kind)).toEqual(['change', 'markdown', 'terminal', 'image', 'plain'])
  expect(partsOf(call({ content: 7 }))).toEqual([])
})

test('each path is listed once', () => expect(pathsOf(call({ locations: [{ path: '/a' }, { path: '/a', line: 2 }, 3] }))).toEqual(['/a']))

test('only a path inside the workspace is shortened', () => {
  expect(pathWithin('/w/src/a.ts', '/w')).toBe('src/a.ts')
  for (const path of ['/w/../etc/passwd', '/ww/a', '/w', 'a.ts']) expect(pathWithin(path, '/w')).toBe(path)
  expect(pathWithin('/w/a', undefined)).toBe('/w/a')
})

test('only bitmap images are shown', () => {
  expect(imageAddress('image/png', 'AA==')).toBe('data:image/png;base64,AA==')
  expect(imageAddress('image/svg+xml', 'AA==')).toBeUndefined()
  expect(imageAddress('image/png', '"><script>')).toBeUndefined()
})

test('an answered permission names its device, or the reason why it ended without an answer', () => {
  expect(answeredBy('phone')).toBe('by phone')
  expect(answeredBy('user_request')).toBe('because the agent was stopped')
  expect(answeredBy('idle_timeout')).toBe('because it was idle for too long')
})
