/** Formatted text as plain values: the only shapes that ever become elements of the page. */
export type Node = string | Element

export interface Element {
  readonly tag: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: readonly Node[]
}

export function element(tag: string, attributes: Record<string, string> = {}, children: readonly Node[] = []): Element {
  return { tag, attributes, children }
}

export function textOf(node: Node): string {
  return typeof node === 'string' ? node : node.children.map(textOf).join('')
}
