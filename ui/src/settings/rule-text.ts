/** Describe a permission rule in words. */
import type { Rule } from '../api/types/permissions.ts'

/** The kinds of actions, by their names in the protocol. */
export const KINDS: Readonly<Record<string, string>> = {
  read: 'Read files',
  edit: 'Edit files',
  delete: 'Delete files',
  move: 'Move files',
  search: 'Search',
  execute: 'Run a command',
  think: 'Think',
  fetch: 'Fetch from the network',
  switch_mode: 'Switch its mode',
}

/** Return a phrase such as "allow Claude: Read files (/notes.md)". */
export function ruleText({ answer, kind, path, command }: Rule, agent: string): string {
  const object = command ?? path
  return `${answer} ${agent}: ${KINDS[kind] ?? kind}${object === null ? '' : ` (${object})`}`
}
