/** Describe levels, limits, grants and refusals of the sandbox in the words of the page. */
import type { InboxItem } from '../api/types/inbox.ts'
import type { Grant, RunSandbox } from '../api/types/sandbox.ts'
import type { Session } from '../api/types/sessions.ts'

export type Level = RunSandbox['level']

/** What each level means, for a list of choices. */
export const LEVELS: Record<Level, string> = {
  workspace: 'writes its workspace, uses your network',
  sealed: 'writes its workspace, reaches only allowed hosts',
  open: 'no sandbox, accesses all that you can',
}

/** Verbs of grants, as in "may reach example.org". */
export const VERBS: Record<Grant['kind'], string> = { host: 'reach', read: 'read', write: 'write' }

const SHORT: Record<Level, string> = { open: 'no sandbox', workspace: 'sandbox', sealed: 'sandbox without network' }

/** Return a short text for the level of a worker; empty for one without a process, and for runs of older servers. */
export function levelText(level: Level | null): string {
  return level ? SHORT[level] : ''
}

/** Return whether an agent of the session runs, or ran, without a sandbox. */
export function isUnprotected({ workers }: Pick<Session, 'workers'>): boolean {
  return workers.some(({ type, sandbox, state }) => type === 'agent' && sandbox === 'open' && state !== 'terminated')
}

/** Return how the network of a run can be used. */
export function networkText({ hasNetwork, hosts }: Pick<RunSandbox, 'hasNetwork' | 'hosts'>): string {
  if (hasNetwork) return 'Yours, with all ports of this machine'
  return hosts.length ? `Only ${hosts.join(', ')}` : 'None'
}

/** Return a limit of a session in words; memory and disk are in bytes. */
export function limitText({ name, value }: { readonly name: string; readonly value: number }): string {
  if (value === 0) return 'no limit'
  return name === 'processes' ? `${value}, with their threads` : byteText(value)
}

function byteText(bytes: number): string {
  return bytes < 2 ** 30 ? `${Math.round(bytes / 2 ** 20)} MiB` : `${Number((bytes / 2 ** 30).toFixed(1))} GiB`
}

/** Return the label of the button that allows what the sandbox refused, in the sessions of a repository or in all. */
export function allowText({ kind, target }: NonNullable<InboxItem['refused']>, repository: string | undefined): string {
  const object = kind === 'host' ? target : kind === 'read' ? 'reading' : 'writing'
  return `Allow ${object} ${repository === undefined ? 'in all sessions' : `for ${repository}`}`
}
