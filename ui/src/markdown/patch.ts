/** Update DOM elements to show a tree, and change only what differs, so that selections survive and nothing flickers. */
import type { Element as Tree, Node as TreeNode } from './tree.ts'

/** Make the children of `parent` from index `at` show `next`; `before` is the tree that they show now. */
export function patch(parent: globalThis.Element, at: number, before: readonly TreeNode[], next: readonly TreeNode[]): void {
  const shared = Math.min(before.length, next.length)
  for (let n = 0; n < shared; n++) patchNode(parent.childNodes[at + n]!, before[n]!, next[n]!)
  for (let n = shared; n < next.length; n++) parent.append(createNode(next[n]!))
  for (let n = shared; n < before.length; n++) parent.lastChild?.remove()
}

export function createNode(node: TreeNode): globalThis.Node {
  if (typeof node === 'string') return document.createTextNode(node)
  const created = document.createElement(node.tag)
  for (const [name, value] of Object.entries(node.attributes)) created.setAttribute(name, value)
  created.append(...node.children.map(createNode))
  return created
}

/** Make one DOM node, which shows `before`, show `next`. */
function patchNode(existing: ChildNode, before: TreeNode, next: TreeNode): void {
  if (before === next) return
  if (typeof before === 'string' && typeof next === 'string') return patchText(existing as Text, before, next)
  if (typeof before !== 'string' && typeof next !== 'string' && canPatch(before, next))
    return patch(existing as globalThis.Element, 0, before.children, next.children)
  existing.replaceWith(createNode(next))
}

/** Change a text node; at its end if the text only grew. */
function patchText(existing: Text, before: string, next: string): void {
  if (next.startsWith(before)) existing.appendData(next.slice(before.length))
  else existing.data = next
}

/** Return whether two elements have the same tag and attributes, so that only their children differ. */
function canPatch(before: Tree, next: Tree): boolean {
  const names = Object.keys(before.attributes)
  return (
    before.tag === next.tag &&
    names.length === Object.keys(next.attributes).length &&
    names.every((name) => before.attributes[name] === next.attributes[name])
  )
}
