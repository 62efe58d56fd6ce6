/** Links in terminals: only web addresses are opened, in a new tab without access to this page, and the address is shown first. */
import { WebLinksAddon } from '@xterm/addon-web-links'
import type { ILinkHandler } from '@xterm/xterm'

export interface LinkEvents {
  /** The pointer is over a link, or with undefined over none. */
  onLinkHover(address: string | undefined): void
  /** The user clicked a link; `sure` if Ctrl or ⌘ was pressed, which opens it without a question. */
  onLinkActivate(address: string, sure: boolean): void
}

/** Return the addon that detects addresses in the text. */
export function textLinks(events: LinkEvents): WebLinksAddon {
  return new WebLinksAddon((event, address) => events.onLinkActivate(address, isSure(event)), {
    hover: (_event, address) => events.onLinkHover(address),
    leave: () => events.onLinkHover(undefined),
  })
}

/** Return the handler for links with their own text (OSC 8). */
export function namedLinks(events: LinkEvents): ILinkHandler {
  return {
    activate: (event, address) => events.onLinkActivate(address, isSure(event)),
    hover: (_event, address) => events.onLinkHover(address),
    leave: () => events.onLinkHover(undefined),
    allowNonHttpProtocols: false,
  }
}

/** Open a web address in a new tab; other addresses are ignored. */
export function openAddress(address: string): void {
  if (/^https?:\/\//i.test(address)) window.open(address, '_blank', 'noopener,noreferrer')
}

function isSure(event: MouseEvent): boolean {
  return event.ctrlKey || event.metaKey
}
