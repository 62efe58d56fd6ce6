/** Update DOM elements to show a tree, and change only what differs, so that selections survive and nothing flickers. */
import type { Element as Tree, Node as TreeNode } from './tree.ts'

/** Make the children of `parent` from index `at` show `next`; `before` is the tree that they show now. */
export function patch(parent: globalThis.Element, at: number, before: readonly TreeNode[], next: readonly TreeNode[]): void {
  const shared = Math.min(before.length, next.length)
  for (let n = 0; n < shared; n++) patchNode(parent.childNodes[at + n]!, before[n]!, next[n]!)
  for (let n = shared; n < next.length; n++) parent.append(make(next[n]!))
  for (let n = shared; n < before.length; n++) parent.lastChild?.remove()
}

export function make(node: TreeNode): globalThis.Node {
  if (typeof node === 'string') return document.createTextNode(node)
  const made = document.createElement(node.tag)
  for (const [name, value] of Object.entries(node.attributes)) made.setAttribute(name, value)
  made.append(...node.children.map(make))
  return made
}

function patchNode(place: ChildNode, before: TreeNode, next: TreeNode): void {
  if (before === next) return
  if (typeof before === 'string' && typeof next === 'string') return patchText(place as Text, before, next)
  if (typeof before !== 'string' && typeof next !== 'string' && isAlike(before, next))
    return patch(place as globalThis.Element, 0, before.children, next.children)
  place.replaceWith(make(next))
}

function patchText(place: Text, before: string, next: string): void {
  if (next.startsWith(before)) place.appendData(next.slice(before.length))
  else place.data = next
}

function isAlike(before: Tree, next: Tree): boolean {
  const names = Object.keys(before.attributes)
  return (
    before.tag === next.tag &&
    names.length === Object.keys(next.attributes).length &&
    names.every((name) => before.attributes[name] === next.attributes[name])
  )
}
