/**
 * The layout of a session: panes with tabs, beside and below each other. All functions are pure and return a new layout.
 * A stored layout is updated with the current workers by `reconcile`.
 */

export interface Pane {
  kind: 'pane'
  id: number
  tabs: string[]
  active: string | undefined
}

export interface Split {
  kind: 'split'
  direction: 'row' | 'column'
  sizes: number[]
  children: Node[]
}

export type Node = Pane | Split

export interface Layout {
  root: Node
  focused: number
  /** Workers without a tab; they keep running and can be shown again. */
  hidden: string[]
  nextId: number
}

/** The layout of a new session: one empty pane. */
export const NEW: Layout = { root: { kind: 'pane', id: 0, tabs: [], active: undefined }, focused: 0, hidden: [], nextId: 1 }

/** Return all panes below a node, in order. */
export function panes(node: Node): Pane[] {
  return node.kind === 'pane' ? [node] : node.children.flatMap(panes)
}

export function focusedPane(layout: Layout): Pane {
  const all = panes(layout.root)
  return all.find((pane) => pane.id === layout.focused) ?? (all[0] as Pane)
}

/** Add tabs for new workers in the focused pane, unless `shown` is false, and remove the tabs of workers that are gone. */
export function reconcile(layout: Layout, workers: readonly { id: string; shown: boolean }[]): Layout {
  const ids = new Set(workers.map((worker) => worker.id))
  const known = new Set([...panes(layout.root).flatMap((pane) => pane.tabs), ...layout.hidden])
  const gone = [...known].filter((id) => !ids.has(id))
  const fresh = workers.filter((worker) => !known.has(worker.id))
  if (!gone.length && !fresh.length) return layout
  const kept = gone.reduce((next, id) => withoutTab(next, id), layout)
  const hidden = kept.hidden.filter((id) => ids.has(id))
  return fresh.reduce(
    (next, { id, shown }) => (shown ? addTab(next, id) : { ...next, hidden: [...next.hidden, id] }),
    { ...kept, hidden },
  )
}

/** Show the tab of a worker; a hidden worker gets a tab in the focused pane. */
export function show(layout: Layout, workerId: string): Layout {
  const holder = panes(layout.root).find((pane) => pane.tabs.includes(workerId))
  if (!holder) return show({ ...addTab(layout, workerId), hidden: layout.hidden.filter((id) => id !== workerId) }, workerId)
  return { ...change(layout, holder.id, (pane) => ({ ...pane, active: workerId })), focused: holder.id }
}

export function focus(layout: Layout, paneId: number): Layout {
  return layout.focused === paneId ? layout : { ...layout, focused: paneId }
}

/** Close the tab of a worker. A pane without tabs is closed if there are other panes. */
export function hide(layout: Layout, workerId: string): Layout {
  return { ...withoutTab(layout, workerId), hidden: [...layout.hidden.filter((id) => id !== workerId), workerId] }
}

/** Add a pane to the right of a pane (`row`) or below it (`column`), and focus it. The tab of `workerId`, if given, moves into it. */
export function split(layout: Layout, paneId: number, direction: 'row' | 'column', workerId?: string): Layout {
  const id = layout.nextId
  const moved = workerId === undefined ? layout : withoutTab(layout, workerId, paneId)
  const fresh: Pane = { kind: 'pane', id, tabs: workerId === undefined ? [] : [workerId], active: workerId }
  const root = replace(moved.root, paneId, (pane) => splitWith(pane, fresh, direction))
  return withValidFocus({ ...moved, root, focused: id, nextId: id + 1 })
}

/** Move a tab to a pane, before the tab `before` if it is given. */
export function move(layout: Layout, workerId: string, paneId: number, before?: string): Layout {
  const from = panes(layout.root).find((pane) => pane.tabs.includes(workerId))
  if (!from || before === workerId) return layout
  const moved = withoutTab(layout, workerId, paneId)
  return { ...change(moved, paneId, (pane) => insertTab(pane, workerId, before)), focused: paneId }
}

/** Close a pane and move its tabs to another pane. */
export function closePane(layout: Layout, paneId: number): Layout {
  const all = panes(layout.root)
  const other = all.find((pane) => pane.id !== paneId)
  const closing = all.find((pane) => pane.id === paneId)
  if (!other || !closing) return layout
  const given = change(layout, other.id, (pane) => ({ ...pane, tabs: [...pane.tabs, ...closing.tabs], active: pane.active ?? closing.active }))
  return withValidFocus({ ...given, root: remove(given.root, paneId), focused: other.id })
}

/** Set the sizes of a split; `path` has the child indexes that lead from the root to the split. */
export function resize(layout: Layout, path: readonly number[], sizes: number[]): Layout {
  return { ...layout, root: withSizes(layout.root, path, sizes) }
}

/** Set the sizes of the split that a path of child numbers leads to. */
function withSizes(node: Node, [first, ...rest]: readonly number[], sizes: number[]): Node {
  if (node.kind === 'pane') return node
  if (first === undefined) return { ...node, sizes }
  return { ...node, children: node.children.map((child, n) => (n === first ? withSizes(child, rest, sizes) : child)) }
}

/** Add a tab to the focused pane; it is shown only if the pane shows no other one. */
function addTab(layout: Layout, workerId: string): Layout {
  return change(layout, focusedPane(layout).id, (pane) => ({ ...pane, tabs: [...pane.tabs, workerId], active: pane.active ?? workerId }))
}

/** Remove a tab, and its pane if that is empty then; the pane `keep` stays. */
function withoutTab(layout: Layout, workerId: string, keep?: number): Layout {
  const root = mapPanes(layout.root, (pane) => (pane.tabs.includes(workerId) ? removeTab(pane, workerId) : pane))
  const empty = panes(root).find((pane) => !pane.tabs.length && pane.id !== keep && panes(layout.root).some((was) => was.id === pane.id && was.tabs.length))
  return withValidFocus({ ...layout, root: empty && panes(root).length > 1 ? remove(root, empty.id) : root })
}

/** Remove a tab; if it was shown, show the one after it, else the one before it. */
function removeTab(pane: Pane, workerId: string): Pane {
  const at = pane.tabs.indexOf(workerId)
  const tabs = pane.tabs.filter((id) => id !== workerId)
  return { ...pane, tabs, active: pane.active === workerId ? (tabs[at] ?? tabs[at - 1]) : pane.active }
}

/** Show a tab in a pane, before another one or at the end. */
function insertTab(pane: Pane, workerId: string, before?: string): Pane {
  const rest = pane.tabs.filter((id) => id !== workerId)
  const at = before === undefined ? rest.length : rest.indexOf(before)
  return { ...pane, tabs: rest.toSpliced(at < 0 ? rest.length : at, 0, workerId), active: workerId }
}

function splitWith(pane: Pane, fresh: Pane, direction: 'row' | 'column'): Node {
  return { kind: 'split', direction, sizes: [0.5, 0.5], children: [pane, fresh] }
}

function change(layout: Layout, paneId: number, update: (pane: Pane) => Pane): Layout {
  return { ...layout, root: mapPanes(layout.root, (pane) => (pane.id === paneId ? update(pane) : pane)) }
}

function mapPanes(node: Node, update: (pane: Pane) => Pane): Node {
  return node.kind === 'pane' ? update(node) : { ...node, children: node.children.map((child) => mapPanes(child, update)) }
}

/** Replace the pane with this id. */
function replace(node: Node, paneId: number, update: (pane: Pane) => Node): Node {
  if (node.kind === 'pane') return node.id === paneId ? update(node) : node
  return { ...node, children: node.children.map((child) => replace(child, paneId, update)) }
}

/** Remove a pane. Its siblings share its space, and a split with one child is replaced by that child. */
function remove(node: Node, paneId: number): Node {
  if (node.kind === 'pane') return node
  const at = node.children.findIndex((child) => child.kind === 'pane' && child.id === paneId)
  const children = at < 0 ? node.children.map((child) => remove(child, paneId)) : node.children.toSpliced(at, 1)
  if (children.length === 1) return children[0] as Node
  const left = at < 0 ? node.sizes : node.sizes.toSpliced(at, 1)
  const sum = left.reduce((total, size) => total + size, 0)
  return { ...node, children, sizes: left.map((size) => size / sum) }
}

/** Return the layout with the focus on an existing pane. */
function withValidFocus(layout: Layout): Layout {
  return { ...layout, focused: focusedPane(layout).id }
}
