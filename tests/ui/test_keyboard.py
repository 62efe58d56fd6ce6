"""Every control of every view is reached with the keyboard: by Tab, or by arrow keys inside a group."""

from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, Page

from support.page_content import PageContent
from support.page_views import ViewNavigator
from support.server import Server

# Records every element that gets the focus, and every option that a focused field selects.
RECORD_FOCUS = """() => {
  window.reached = new Set()
  window.record = (each) => {
    window.reached.add(each)
    window.reached.add(document.getElementById(each?.getAttribute('aria-activedescendant') ?? ''))
  }
  addEventListener('focusin', ({ target }) => record(target))
  new MutationObserver((changes) => changes.forEach(({ target }) => record(target)))
    .observe(document, { subtree: true, attributeFilter: ['aria-activedescendant'] })
  window.nameOf = (each) => {
    const place = each.closest('nav, header.top') ? 'frame' : location.hash.split('/')[1]
    const text = each.getAttribute('aria-label') ?? each.textContent.trim().slice(0, 50)
    return `${place} ${each.getAttribute('role') ?? each.tagName} ${text}`
  }
}"""
# Exempt are the cross of a tab, which is hidden from assistive technology (there is the command "Close tab"),
# and the marks of a time line (two buttons go to the next ones). Tab starts behind a frame that is known.
FIND_CONTROLS = """(known) => {
  const root = [...document.querySelectorAll('[role=dialog], [role=menu]')].at(-1) ?? document
  const isShown = (each) => each.checkVisibility({ visibilityProperty: true })
  const isExempt = (each) => each.disabled || each.closest('[aria-hidden=true], .mark')
  const shown = [...root.querySelectorAll(`a[href], button, input:not(.spoken), select, textarea, summary,
    [tabindex="0"], [role=tab], [role=radio], [role=option], [role=menuitem], [role=treeitem]`)]
    .filter((each) => isShown(each) && !isExempt(each))
  window.controls = shown.filter((each) => !known.includes(nameOf(each)))
  window.names = controls.map(nameOf)
  window.tried = new Set()
  window.reached.clear()
  record(document.activeElement)
  const isFrameKnown = !window.controls.some((each) => nameOf(each).startsWith('frame'))
  if (root === document && isFrameKnown && document.activeElement === document.body)
    document.querySelector('nav [role=separator]')?.focus()
  return shown.length
}"""
MISSED = "() => window.names.filter((_, n) => !window.reached.has(window.controls[n]))"
STATE = """() => {
  const before = window.last
  window.last = document.activeElement
  const isInTabOrder = (each) => each.isConnected && each.tabIndex >= 0
  if (window.controls.every((each) => window.reached.has(each) || !isInTabOrder(each))) return 'done'
  return window.last === before && before.closest('.xterm') ? 'terminal' : ''  // its program gets Tab
}"""
# Moves the focus to a group with a control that was not reached. Returns keys to press in it, and how often.
ENTER_GROUP = """() => {
  const tabsLast = (a, b) => a.matches('[role=tab]') - b.matches('[role=tab]') // they change others
  for (const missing of window.controls.toSorted(tabsLast)) {
    const group = missing.closest('[role=tablist], [role=menu], [role=table], [role=listbox]')
    if (!group?.isConnected || window.reached.has(missing) || window.tried.has(group)) continue
    const members = [...group.querySelectorAll('[role=tab], [role=menuitem], [role=option], [data-line]')]
    const focused = group.contains(document.activeElement) ? document.activeElement : null
    const entry = members.find((each) => !each.matches('[role=option]') && window.reached.has(each))
      ?? focused ?? document.querySelector(`[aria-controls="${group.id}"]`)
    if (!entry) continue
    window.tried.add(group)
    entry.focus()
    return [group.matches('[role=tablist]') ? ['ArrowRight'] : ['ArrowDown', 'ArrowUp'], members.length]
  }
  return [[], 0]
}"""


@pytest.mark.long
async def test_tab_and_arrow_keys_reach_every_control_of_every_view(
    device: BrowserContext, workspace: Path, server: Server
) -> None:
    content = await PageContent.create(workspace, server)
    await content.add_records()
    page = await device.new_page()
    await page.goto(server.url)
    await page.evaluate(RECORD_FOCUS)
    known: list[str] = []
    missed: list[str] = []
    for name, open_view in ViewNavigator(page, content).all().items():
        await open_view()
        await walk(page, await page.evaluate(FIND_CONTROLS, known))
        known += await page.evaluate("window.names")
        missed += [f"{name}: {each}" for each in await page.evaluate(MISSED)]
    assert len(known) > 150, known
    assert missed == [], "\n".join(missed)


async def walk(page: Page, controls: int) -> None:
    """Press arrow keys in an open group, then Tab in both directions, then arrow keys in other groups."""
    await walk_groups(page)
    for way in ("Tab", "Shift+Tab", "Tab"):
        if await page.evaluate(STATE) == "terminal":
            await page.keyboard.press("Control+Shift+F6")
        for _ in range(2 * controls):
            if await page.evaluate(STATE):
                break
            await page.keyboard.press(way)
    await walk_groups(page)


async def walk_groups(page: Page) -> None:
    await page.evaluate("window.tried.clear()")
    while True:
        keys, presses = await page.evaluate(ENTER_GROUP)
        if not keys:
            return
        for key in keys:
            for _ in range(presses):
                await page.keyboard.press(key)
