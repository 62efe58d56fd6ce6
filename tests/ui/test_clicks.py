"""Every control of every view stays where it is while the mouse button is down, and gets the click."""

import asyncio
from pathlib import Path
from typing import Any

import pytest_asyncio
from playwright.async_api import BrowserContext, Page, expect

from support.page_views import ViewNavigator, begin_session_for_views
from support.server import Server
from support.session_client import SessionClient

HELD = 0.12  # seconds the button is down, as a slow finger has it
LOOKS = 100  # after which a control that is not under the mouse is covered
# Clicks reach no handler of the page, so that one view stays while all of its controls are tried.
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
# As a person finds the view: scrolled as it came, and nothing has the focus.
PREPARE = """(n) => {
  document.activeElement?.blur?.()
  window.clicked = undefined
  for (const [each, top] of window.scrolled) each.scrollTop = top
  window.controls[n].scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' })
}"""
PLACE = """(n) => {
  const control = window.controls[n]
  const { x, y, width, height } = control.getBoundingClientRect()
  const hit = document.elementFromPoint(x + width / 2, y + height / 2)
  const open = control.getAttribute('aria-expanded') === 'true'
  return { x, y, width, height, open, hit: control.contains(hit) }
}"""
ARRIVED = "(n) => window.controls[n].contains(window.clicked)"


class ClickedViews(ViewNavigator):
    """All views, and the dialogs over them."""

    names = ("home", "new_session", "chat", "changes", "queue", *ViewNavigator.names[2:], "help")

    async def new_session(self) -> None:
        await self._page.get_by_role("button", name="New session").first.click()
        await expect(self._page.get_by_role("dialog", name="New session")).to_be_visible()

    async def changes(self) -> None:
        await self._page.get_by_role("button", name="New worker").click()
        await self._page.get_by_role("menuitem", name="Changes").click()
        await expect(self._page.get_by_role("region", name="readme.txt")).to_contain_text("world")

    async def queue(self) -> None:
        await self._page.get_by_role("tab", name="Scripted").click()
        await self._page.get_by_label("Message", exact=True).fill("and then this")
        await self._page.keyboard.press("Enter")
        await expect(self._page.get_by_role("region", name="Queue").get_by_role("listitem")).to_be_visible()

    async def help(self) -> None:
        await self._show("")
        await self._page.keyboard.press("Control+/")
        await expect(self._page.get_by_role("dialog", name="Keys")).to_be_visible()


@pytest_asyncio.fixture(loop_scope="session")
async def talk(workspace: Path, server: Server) -> SessionClient:
    return await begin_session_for_views(workspace, server)


async def test_no_control_moves_under_a_mouse_button_that_is_held(
    device: BrowserContext, talk: SessionClient
) -> None:
    page = await device.new_page()
    await page.set_viewport_size({"width": 1100, "height": 560})
    await page.goto(talk.server.url)
    await page.evaluate(CATCH_CLICKS)
    tried: list[str] = []
    wrong: list[str] = []
    for name, come in ClickedViews(page, talk).all().items():
        await come()
        for n, control in enumerate(found := await page.evaluate(FIND_CONTROLS, tried)):
            wrong += [f"{name}: {control} {fault}" for fault in await hold(page, n)]
        tried += found
    assert len(tried) > 100, tried
    assert not wrong, "\n".join(wrong)


async def hold(page: Page, n: int) -> list[str]:
    """Hold the mouse button on a control and release it; return what went wrong."""
    await page.evaluate(PREPARE, n)
    before = await settled(page, n)
    if not before["hit"]:
        return ["is covered"]
    await page.evaluate("window.catching = true")
    await page.mouse.down()
    await asyncio.sleep(HELD)
    during = await page.evaluate(PLACE, n)
    await page.mouse.up()
    arrived = await page.evaluate(ARRIVED, n)
    await page.evaluate("window.catching = false")
    if during["open"] and not before["open"]:  # a menu opens when the button goes down
        await page.keyboard.press("Escape")
        arrived = True
    moved = [round(during[side] - before[side], 1) for side in ("x", "y")]
    return [*([f"moved by {moved}"] if moved != [0, 0] else []), *([] if arrived else ["lost its click"])]


async def settled(page: Page, n: int) -> dict[str, Any]:
    """Move the mouse over a control and return its place once it is still."""
    before: dict[str, Any] = {}
    for _ in range(LOOKS):
        place: dict[str, Any] = await page.evaluate(PLACE, n)
        await page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
        if place == before and place["hit"]:
            break
        before = place
    return place
