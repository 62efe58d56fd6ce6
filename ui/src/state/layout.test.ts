import { expect, test } from 'vitest'
import * as layout from './layout.ts'

const worker = (id: string, shown = true) => ({ id, shown })
const three = layout.reconcile(layout.NEW, ['a', 'b', 'c'].map((id) => worker(id)))

/** Return each pane as its tabs: the shown tab in brackets, the focused pane with a star. */
function drawn(of: layout.Layout): string[] {
  return layout.panes(of.root).map((pane) => pane.tabs.map((id) => (id === pane.active ? `[${id}]` : id)).join(' ') + (pane.id === of.focused ? '*' : ''))
}

test('each worker gets a tab, the first is shown, and commands of agents are hidden', () => {
  const next = layout.reconcile(three, [worker('a'), worker('b'), worker('c'), worker('d', false)])
  expect(drawn(next)).toEqual(['[a] b c*'])
  expect(drawn(layout.show(next, 'd'))).toEqual(['a b c [d]*'])
})

test('the same workers give the same layout object, so that nothing is drawn again', () => {
  expect(layout.reconcile(three, ['a', 'b', 'c'].map((id) => worker(id)))).toBe(three)
})

test('the tab of a removed worker is removed and its neighbour is shown', () => {
  expect(drawn(layout.reconcile(layout.show(three, 'b'), [worker('a'), worker('c')]))).toEqual(['a [c]*'])
})

test('a split moves a tab to a new pane, which closes with its last tab', () => {
  const split = layout.split(three, 0, 'row', 'b')
  expect(drawn(split)).toEqual(['[a] c', '[b]*'])
  expect(drawn(layout.reconcile(split, [worker('a'), worker('c')]))).toEqual(['[a] c*'])
})

test('an empty pane stays until a tab is moved there or it is closed', () => {
  const split = layout.split(three, 0, 'column')
  expect(drawn(split)).toEqual(['[a] b c', '*'])
  expect(drawn(layout.move(split, 'c', 1))).toEqual(['[a] b', '[c]*'])
  expect(drawn(layout.closePane(split, 1))).toEqual(['[a] b c*'])
})

test('a new worker gets a tab in the focused pane', () => {
  const split = layout.split(three, 0, 'row')
  expect(drawn(layout.reconcile(split, ['a', 'b', 'c', 'd'].map((id) => worker(id))))).toEqual(['[a] b c', '[d]*'])
})

test('a tab can be moved before another tab, also in its own pane', () => {
  expect(drawn(layout.move(three, 'c', 0, 'a'))).toEqual(['[c] a b*'])
  expect(layout.move(three, 'a', 0, 'a')).toBe(three)
})

test('a hidden worker can be shown again', () => {
  const hidden = layout.hide(three, 'a')
  expect([drawn(hidden), hidden.hidden]).toEqual([['[b] c*'], ['a']])
  const again = layout.show(hidden, 'a')
  expect([drawn(again), again.hidden]).toEqual([['b c [a]*'], []])
})

test('a closed pane gives its tabs and its space to the others', () => {
  const split = layout.split(layout.split(three, 0, 'row', 'b'), 0, 'row', 'c')
  const closed = layout.closePane(split, 1)
  expect(drawn(closed).join(' ')).toContain('b')
  expect(layout.panes(closed.root)).toHaveLength(2)
})

test('resize changes the split at a path', () => {
  const inner = layout.split(layout.split(three, 0, 'row', 'b'), 1, 'column')
  const { root } = layout.resize(inner, [1], [0.3, 0.7])
  expect(root).toMatchObject({ sizes: [0.5, 0.5], children: [{}, { sizes: [0.3, 0.7] }] })
})
