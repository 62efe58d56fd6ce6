import { expect, test } from 'vitest'
import { clonePath, directorySuggestions, isAddress, namedDirectory, withoutSlash } from './project-path.ts'

const directory = (path: string, isRepository = false) => ({ path, isRepository, isAllowed: false })

test.each(['https://example.org/a.git', 'ssh://git@host/a', 'git@github.com:team/a.git', ' http://127.0.0.1/a'])('%s is an address', (text) => {
  expect(isAddress(text)).toBe(true)
})

test.each(['/srv/app', '~/code', 'code', '/srv/me@host/app', ''])('%s is no address', (text) => {
  expect(isAddress(text)).toBe(false)
})

test('directories are suggested by name until the text names the only one', () => {
  const found = [directory('/srv/app', true), directory('/srv/apple')]
  expect(directorySuggestions('/srv/ap', found)).toEqual([
    { key: '/srv/app', label: 'app', icon: 'repository', detail: 'git repository' },
    { key: '/srv/apple', label: 'apple', icon: 'files' },
  ])
  expect(directorySuggestions('/srv/apple', found.slice(1))).toEqual([])
})

test('a text names the directory with exactly its last name', () => {
  const found = [directory('/home/me/apple'), directory('/home/me/app', true)]
  expect(namedDirectory('~/app/', found)).toBe(found[1])
  expect(namedDirectory('~/ap', found)).toBeUndefined()
})

test.each(['https://example.org/team/app.git', 'git@host:app', 'ssh://host/app/'])('%s is cloned into a directory named app', (address) => {
  expect(clonePath(address, '/srv/')).toBe('/srv/app')
})

test('a path has no slash at its end', () => {
  expect(withoutSlash(' /srv/app// ')).toBe('/srv/app')
  expect(withoutSlash('/')).toBe('/')
})
