"""No control of any view moves while the mouse button is held down on it, and each gets its click."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page

from support.page_content import PageContent
from support.page_views import ViewNavigator
from support.server import Server

HOLD_SECONDS = 0.12  # how long a slow finger presses the button
MAX_LOOKS = 100  # then a control that is not under the mouse counts as covered
# Clicks reach no handler of the page, so that the view stays open while all of its controls are tried.
CATCH_CLICKS = """() => {
  addEventListener('click', (event) => {
    if (!window.catching) return
    event.preventDefault()
    event.stopImmediatePropagation()
    window.clicked = event.target
  }, true)
}"""
# In a dialog only its own controls can be clicked. Marks of a time line may cover each other.
FIND_CONTROLS = """(known) => {
  const root = [...document.querySelectorAll('[role=dialog], [role=menu]')].at(-1) ?? document
  const all = root.querySelectorAll(
    'a[href], button:not(.mark), summary, [role=tab], [role=radio], [role=option], input[type=checkbox]')
  const isShown = (each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true })
  const shown = [...all].filter((each) => isShown(each) && !each.disabled)
  const scrolled = [...root.querySelectorAll('*')].filter((each) => each.scrollTop)
  window.scrolled = scrolled.map((each) => [each, each.scrollTop])
  window.controls = []
  const names = []
  for (const each of shown) {
    const place = each.closest('nav, header.top') ? 'frame' : location.hash
    const label = each.getAttribute('aria-label') ?? each.textContent.trim().slice(0, 60)
    const name = `${place} ${each.tagName} ${label}`
    if (known.includes(name) || names.includes(name)) continue
    names.push(name)
    window.controls.push(each)
  }
  return names
}"""
# Restores the view as it was opened: the same scroll positions, and no element has the focus.
PREPARE = """(n) => {
  document.activeElement?.blur?.()
  window.clicked = undefined
  for (const [each, top] of window.scrolled) each.scrollTop = top
  window.controls[n].scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' })
}"""
GET_BOX = """(n) => {
  const control = window.controls[n]
  const { x, y, width, height } = control.getBoundingClientRect()
  const hit = document.elementFromPoint(x + width / 2, y + height / 2)
  const open = control.getAttribute('aria-expanded') === 'true'
  return { x, y, width, height, open, hit: control.contains(hit) }
}"""
WAS_CLICKED = "(n) => window.controls[n].contains(window.clicked)"


class ClickedViews(ViewNavigator):
    """The views that have controls of their own."""

    names = (
        *("home", "new_session", "chat", "queue", "changes", "diff", "files", "question", "terminal"),
        *("replay", "mention", "inbox", "search", "usage", "palette", "help", "archived"),
    )


@pytest.mark.long
async def test_no_control_moves_while_the_mouse_button_is_held_on_it(
    device: BrowserContext, workspace: Path, server: Server
) -> None:
    content = await PageContent.create(workspace, server)
    page = await device.new_page()
    await page.set_viewport_size({"width": 1100, "height": 560})
    await page.goto(server.url)
    await page.evaluate(CATCH_CLICKS)
    tried: list[str] = []
    faults: list[str] = []
    for name, open_view in ClickedViews(page, content).all().items():
        await open_view()
        for n, control in enumerate(found := await page.evaluate(FIND_CONTROLS, tried)):
            faults += [f"{name}: {control} {fault}" for fault in await hold(page, n)]
        tried += found
    assert len(tried) > 100, tried
    assert not faults, "\n".join(faults)


async def hold(page: Page, n: int) -> list[str]:
    """Press, hold and release the mouse button on a control. Return the faults."""
    await page.evaluate(PREPARE, n)
    before = await box_at_rest(page, n)
    if not before["hit"]:
        return ["is covered"]
    await page.evaluate("window.catching = true")
    await page.mouse.down()
    await asyncio.sleep(HOLD_SECONDS)
    during = await page.evaluate(GET_BOX, n)
    await page.mouse.up()
    clicked = await page.evaluate(WAS_CLICKED, n)
    await page.evaluate("window.catching = false")
    if during["open"] and not before["open"]:  # a menu opens when the button goes down
        await page.keyboard.press("Escape")
        clicked = True
    moved = [round(during[side] - before[side], 1) for side in ("x", "y")]
    return [*([f"moved by {moved}"] if moved != [0, 0] else []), *([] if clicked else ["lost its click"])]


async def box_at_rest(page: Page, n: int) -> dict[str, Any]:
    """Move the mouse over a control. Return its box as soon as it no longer moves."""
    before: dict[str, Any] = {}
    for _ in range(MAX_LOOKS):
        box: dict[str, Any] = await page.evaluate(GET_BOX, n)
        await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        if box == before and box["hit"]:
            break
        before = box
    return box
