/** Addresses in a terminal lead only to the web, are shown before they are opened, and have no way back to us. */
import { WebLinksAddon } from '@xterm/addon-web-links'
import type { ILinkHandler } from '@xterm/xterm'

export interface LinkWatcher {
  /** The address under the pointer, undefined when it has left. */
  pointed(address: string | undefined): void
  /** A person wants to go there; `sure` when they held Ctrl or ⌘ and have seen the address. */
  wanted(address: string, sure: boolean): void
}

/** Addresses that stand in the text. */
export function textLinks(watcher: LinkWatcher): WebLinksAddon {
  return new WebLinksAddon((event, address) => watcher.wanted(address, isSure(event)), {
    hover: (_event, address) => watcher.pointed(address),
    leave: () => watcher.pointed(undefined),
  })
}

/** Addresses a program put behind other words (OSC 8). */
export function namedLinks(watcher: LinkWatcher): ILinkHandler {
  return {
    activate: (event, address) => watcher.wanted(address, isSure(event)),
    hover: (_event, address) => watcher.pointed(address),
    leave: () => watcher.pointed(undefined),
    allowNonHttpProtocols: false,
  }
}

export function openAddress(address: string): void {
  if (/^https?:\/\//i.test(address)) window.open(address, '_blank', 'noopener,noreferrer')
}

function isSure(event: MouseEvent): boolean {
  return event.ctrlKey || event.metaKey
}
