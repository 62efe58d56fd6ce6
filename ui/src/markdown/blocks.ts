/**
 * Parse a growing Markdown text incrementally: finished blocks are parsed once, only the last block is parsed again.
 * An agent may send 200 pieces of text a second, and parsing the whole text for each would block the page.
 */
import { parse } from './parse.ts'
import type { Node } from './tree.ts'

/** The changes after more text arrived. */
export interface BlocksUpdate {
  /** Whether the text was replaced, so that all earlier nodes must be removed. */
  readonly replaced: boolean
  /** The number of leading `nodes` that will not change again. */
  readonly closed: number
  /** The nodes after the blocks that were closed by earlier updates. */
  readonly nodes: readonly Node[]
}

// A link may be defined below its use. A text with such a definition is parsed again as a whole at its end.
const DEFINITION = /^ {0,3}\[[^\]]+\]:/m

/** The incremental parser of one text. */
export class MarkdownBlocks {
  #text = ''
  #start = 0 // of the block that is still open

  /** Parse the current whole text and return the changes; `open` means that more text may follow. */
  update(text: string, open: boolean): BlocksUpdate {
    const replaced = !text.startsWith(this.#text) || (!open && this.#start > 0 && DEFINITION.test(text))
    if (replaced) this.#forget()
    this.#text = text
    const tail = text.slice(this.#start)
    const blocks = parse(tail)
    const last = blocks.at(-1)
    const nodes = blocks.map((block) => block.node)
    if (!open || !last) {
      if (!open) this.#start = text.length
      return { replaced, closed: open ? 0 : nodes.length, nodes }
    }
    this.#start += offsetOf(tail, last.line)
    return { replaced, closed: nodes.length - 1, nodes }
  }

  #forget(): void {
    this.#start = 0
    this.#text = ''
  }
}

/** Return the offset of the beginning of a line. */
function offsetOf(text: string, line: number): number {
  let offset = 0
  for (let n = 0; n < line; n++) offset = text.indexOf('\n', offset) + 1
  return offset
}
