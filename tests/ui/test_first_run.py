"""A new user gets from the printed address to the first change of an agent in fewer than 10 actions."""

import re
from collections.abc import Awaitable
from pathlib import Path

from playwright.async_api import BrowserContext, expect

from support.pages import login_url
from support.server import Server

MAX_ACTIONS = 10


class CountingUser:
    """Counts the actions of a user."""

    def __init__(self) -> None:
        self.actions = 0

    async def act(self, action: Awaitable[object]) -> None:
        self.actions += 1
        await action


async def test_the_demo_button_shows_the_plan_the_permission_and_the_change_it_promises(
    visitor: BrowserContext, server: Server
) -> None:
    page = await visitor.new_page()
    await page.goto(await login_url(server))
    await expect(page.get_by_label("Directory")).not_to_have_attribute("placeholder", re.compile("home"))
    promise = page.get_by_text("makes a plan, asks for permission and changes a file")
    await expect(promise).to_be_visible()
    await page.get_by_role("button", name="Try the demo agent").click()
    log = page.get_by_role("log")
    await expect(log).to_contain_text("The plan is done.")
    card = page.get_by_role("region", name="Permission")
    await expect(card).to_contain_text("The demo agent was here (1).")
    await card.get_by_role("button", name="Allow", exact=True).click(delay=120)
    await expect(log).to_contain_text("I have added a line to hello.md")
    await expect(log.get_by_role("figure", name="hello.md")).to_contain_text("The demo agent was here (1).")
    assert "demo agent" in (await _workspace(server) / "hello.md").read_text()


async def test_the_first_change_of_an_agent_takes_fewer_than_10_actions(
    visitor: BrowserContext, server: Server
) -> None:
    page = await visitor.new_page()
    user = CountingUser()
    await user.act(page.goto(await login_url(server)))
    await user.act(page.get_by_role("button", name="Try the demo agent").click())
    log = page.get_by_role("log")
    await expect(log).to_contain_text("The plan is done.")
    await user.act(page.get_by_role("button", name="Reject").click())
    await expect(log).to_contain_text("All right, I leave it.")

    await user.act(page.get_by_label("Message", exact=True).fill("edit notes.md"))
    await user.act(page.keyboard.press("Enter"))
    card = page.get_by_role("region", name="Permission")
    await expect(card).to_contain_text("The demo agent was here (1).")
    await user.act(page.keyboard.press("ArrowUp"))
    await expect(card).to_be_focused()
    await user.act(page.keyboard.press("a"))

    await expect(log).to_contain_text("I have added a line to notes.md")
    change = log.get_by_role("figure", name="notes.md")
    await expect(change.get_by_role("row")).to_contain_text(["The demo agent was here (1)."])
    assert user.actions < MAX_ACTIONS
    assert "demo agent" in (await _workspace(server) / "notes.md").read_text()
    assert await page.evaluate("window.violations") == []


async def _workspace(server: Server) -> Path:
    (session,) = (await server.call("GET", "/api/sessions"))["sessions"]
    return Path(session["locationPath"])
