"""Panes of a session are split, closed and split again."""

import pytest
from playwright.async_api import BrowserContext, Page, expect

from support.pages import TerminalPage
from support.server import Server

LONG_PROMPT = "slow, long"  # the demo agent takes some time for these words


async def open_session(device: BrowserContext, server: Server, terminals: int) -> Page:
    """Open a session with the demo agent and terminals."""
    session = await server.new_session(agentId="demo")
    for _ in range(terminals):
        await server.new_terminal(session["id"])
    page = await device.new_page()
    await page.goto(f"{server.url}/#/session/{session['id']}")
    await expect(page.get_by_role("tab")).to_have_count(terminals + 1)
    return page


async def choose_in_menu(page: Page, item: str) -> None:
    await page.get_by_role("button", name="Session menu").click()
    await page.get_by_role("menuitem", name=item).click()


@pytest.mark.parametrize("direction", ["Split right", "Split down"])
async def test_stop_and_queue_stay_in_a_pane_that_was_split_twice(
    device: BrowserContext, server: Server, direction: str
) -> None:
    page = await open_session(device, server, terminals=2)
    message = page.get_by_label("Message", exact=True)
    for text in (LONG_PROMPT, "first", "second", "third", "fourth"):
        await message.fill(text)
        await message.press("Enter")
    await expect(page.get_by_role("region", name="Queue").get_by_role("listitem")).to_have_count(4)
    for panes in (2, 3):
        await message.click()
        await choose_in_menu(page, direction)
        await expect(page.get_by_role("button", name="Close pane")).to_have_count(panes)
    await message.fill("/")
    await expect(page.get_by_role("option").first).to_be_in_viewport(ratio=1)
    await expect(page.get_by_role("listbox", name="Commands")).to_be_in_viewport(ratio=1)
    await page.get_by_role("option", name="/plan").click()
    await expect(message).to_have_value("/plan ")
    for name in ("Stop", "Queue"):
        await expect(page.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)


async def test_a_pane_is_closed_and_split_again(device: BrowserContext, server: Server) -> None:
    # xterm reports the lost focus to the program while Svelte removes the terminal that has it.
    terminal = await TerminalPage.new(device, server)
    close = terminal.page.get_by_role("button", name="Close pane")
    for _ in range(2):
        await terminal.run(r"printf '\e[?1004h'; echo ready-$((40 + 2)); cat")
        await terminal.wait_for_text("ready-42")
        await terminal.page.keyboard.press("Control+Shift+D")
        await expect(close).to_have_count(2)
        await close.last.click()
        await expect(close).to_have_count(0)
        await terminal.rows.wait_for()
        await terminal.page.locator(".xterm-helper-textarea").press("Control+C")
