/** The text of the field that adds a project: a path, or the address of a git repository. */
import type { ProjectDirectory } from '../api/types/directories.ts'
import type { Suggestion } from '../parts/suggestion-list.svelte.ts'
import { baseName } from '../state/attention.ts'

/** Return whether a text is the address of a git repository and not a path. */
export function isAddress(text: string): boolean {
  return /^\w[\w+.-]*:\/\//.test(text.trim()) || /^[\w.-]+@[\w.-]+:/.test(text.trim())
}

/** Return the suggestions for a typed path. The list is empty if the text names the only directory already. */
export function directorySuggestions(text: string, directories: readonly ProjectDirectory[]): Suggestion[] {
  const [only] = directories
  if (only && directories.length === 1 && only.path === text) return []
  return directories.map(({ path, isRepository }) => ({
    key: path,
    label: baseName(path),
    icon: isRepository ? 'repository' : 'files',
    ...(isRepository && { detail: 'git repository' }),
  }))
}

/** Return the directory whose path is complete in `text`, or undefined; `directories` are those whose path begins with `text`. */
export function namedDirectory(text: string, directories: readonly ProjectDirectory[]): ProjectDirectory | undefined {
  const name = baseName(text)
  return directories.find(({ path }) => baseName(path) === name)
}

/** Return the directory into which git clones an address, inside another directory. */
export function clonePath(address: string, into: string): string {
  const name = address.trim().replace(/\/+$/, '').split(/[/:]/).at(-1) ?? ''
  return `${withoutSlash(into)}/${name.replace(/\.git$/, '')}`
}

/** Return a path without slashes at its end. */
export function withoutSlash(path: string): string {
  return path.trim().replace(/(.)\/+$/, '$1')
}
