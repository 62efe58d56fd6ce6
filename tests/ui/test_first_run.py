"""From the printed address to an agent's first change, on an empty home and in few actions."""

from collections.abc import Awaitable
from pathlib import Path

from playwright.async_api import BrowserContext, expect

from support.pages import login_url
from support.server import Server

FEW = 10


class Person:
    """Does one thing after the other, and counts."""

    def __init__(self) -> None:
        self.actions = 0

    async def does(self, action: Awaitable[object]) -> None:
        self.actions += 1
        await action


async def test_a_first_change_is_a_few_actions_away(visitor: BrowserContext, server: Server) -> None:
    page = await visitor.new_page()
    person = Person()
    await person.does(page.goto(await login_url(server)))
    await person.does(page.get_by_role("button", name="Try the demo agent").click())
    log = page.get_by_role("log")
    await expect(log).to_contain_text("The plan is done.")

    await person.does(page.get_by_label("Message", exact=True).fill("edit notes.md"))
    await person.does(page.keyboard.press("Enter"))
    card = page.get_by_role("region", name="Permission")
    await expect(card).to_contain_text("The demo agent was here (1).")
    await person.does(page.keyboard.press("ArrowUp"))
    await expect(card).to_be_focused()
    await person.does(page.keyboard.press("a"))

    await expect(log).to_contain_text("I have added a line to notes.md")
    change = log.get_by_role("figure", name="notes.md")
    await expect(change.get_by_role("row")).to_contain_text(["The demo agent was here (1)."])
    assert person.actions < FEW
    assert "demo agent" in (await _workspace(server) / "notes.md").read_text()
    assert await page.evaluate("window.violations") == []


async def _workspace(server: Server) -> Path:
    (session,) = (await server.call("GET", "/api/sessions"))["sessions"]
    return Path(session["locationPath"])
