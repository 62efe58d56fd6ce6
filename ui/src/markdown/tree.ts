/** A tree of elements and texts as plain values, from which the page creates DOM elements. */

export type Node = string | Element

export interface Element {
  readonly tag: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: readonly Node[]
}

export function element(tag: string, attributes: Record<string, string> = {}, children: readonly Node[] = []): Element {
  return { tag, attributes, children }
}

/** Return the text of a node and its descendants. */
export function textOf(node: Node): string {
  return typeof node === 'string' ? node : node.children.map(textOf).join('')
}
