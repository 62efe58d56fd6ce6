"""Readable by all: axe-core finds nothing serious in any main view, light or dark."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from support.pages import login_url
from support.repositories import Repo
from support.server import Server
from support.talk import Talk, define_scripted

AXE = Path(__file__).parents[2] / "ui/node_modules/axe-core/axe.min.js"
SETTINGS = ("appearance", "keys", "notifications", "agents", "repositories", "devices", "tokens")
SAID = "# Found\n\nIt is a [needle](https://example.org).\n\n```python\nprint('needle')  # here\n```\n"
COST = {"amount": 1, "currency": "USD"}
USED = {"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": COST}


@pytest_asyncio.fixture(loop_scope="session")
async def talk(workspace: Path, server: Server) -> Talk:
    """A session that has something to show in every view, and waits for a person."""
    repo = Repo(workspace)
    repo.write("readme.txt", "hello\nworld\n")
    repo.write("notes.md", "# Notes\n\n- one\n")
    first = [{"do": "update", "update": USED}, {"do": "plan"}, {"do": "tool"}, {"do": "chunk", "text": SAID}]
    await define_scripted(server, script={"prompts": [first, [{"do": "permission"}]]})
    talk = await Talk.begin(server, title="Seen by axe")
    await talk.ask("the needle, please")
    await talk.prompt("and now?")
    await talk.permission()
    return talk


class Views:
    """How each view is come to; a method is a view."""

    def __init__(self, page: Page, talk: Talk) -> None:
        self._page = page
        self._talk = talk

    def all(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """In an order in which one leads to the next."""
        names = ["home", "chat", "diff", "files", "terminal", "replay", "inbox", "search", "usage", "palette"]
        return {name: getattr(self, name) for name in names}

    async def home(self) -> None:
        await self._show("")
        await expect(self._page.get_by_role("heading", name="Waiting for you")).to_be_visible()

    async def chat(self) -> None:
        await self._show(f"session/{self._talk.id}")
        await expect(self._page.get_by_role("region", name="Permission")).to_be_visible()

    async def diff(self) -> None:
        await self._page.get_by_role("button", name="Show the panel").click()
        panels = self._page.get_by_role("tablist", name="Panels")
        await panels.get_by_role("tab", name="Changes").click()
        changes = self._page.get_by_role("complementary", name="Changes")
        await changes.get_by_role("button", name="readme.txt").click()
        await expect(self._page.get_by_role("region", name="readme.txt")).to_contain_text("world")

    async def files(self) -> None:
        await self._page.get_by_role("tablist", name="Panels").get_by_role("tab", name="Files").click()
        files = self._page.get_by_role("complementary", name="Files")
        await expect(files.get_by_text("notes.md")).to_be_visible()

    async def terminal(self) -> None:
        await self._show("")
        await self._page.get_by_role("button", name="New terminal").click()
        await expect(self._page.locator(".xterm-rows")).to_contain_text("#")

    async def replay(self) -> None:
        await self._show(f"replay/{self._talk.id}")
        await self._page.get_by_role("slider", name="Time").press("End")
        await expect(self._page.get_by_role("log")).to_contain_text("It is a")

    async def inbox(self) -> None:
        await self._show("inbox")
        await expect(self._page.get_by_role("main").get_by_role("article")).to_have_count(1)

    async def search(self) -> None:
        await self._show("search/needle")
        await expect(self._page.get_by_role("main").locator("mark").first).to_be_visible()

    async def usage(self) -> None:
        await self._show("usage")
        await expect(self._page.get_by_role("row", name="Seen by axe")).to_be_visible()

    async def palette(self) -> None:
        await self._page.keyboard.press("Control+K")
        await expect(self._page.get_by_role("combobox", name="Command")).to_be_visible()

    async def settings(self, section: str) -> None:
        await self._show(f"settings/{section}")
        await expect(self._page.locator("main h1, main h2").first).to_be_visible()

    async def _show(self, place: str) -> None:
        await self._page.keyboard.press("Escape")
        await self._page.goto(f"{self._talk.server.url}/#/{place}")


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_axe_finds_nothing_serious(browser: Browser, talk: Talk, theme: Any) -> None:
    profile = await browser.new_context(  # what fades in has no contrast yet
        color_scheme=theme, reduced_motion="reduce", viewport={"width": 1200, "height": 800}
    )
    await profile.add_init_script(path=AXE)
    page = await profile.new_page()
    await page.goto(await login_url(talk.server))
    views = Views(page, talk)
    found: dict[str, list[str]] = {}
    for name, come in views.all().items():
        await come()
        found |= await serious(page, name)
    for section in SETTINGS:
        await views.settings(section)
        found |= await serious(page, section)
    assert found == {}, json.dumps(found, indent=1)


async def serious(page: Page, view: str) -> dict[str, list[str]]:
    """What axe-core calls serious or critical, with the places."""
    results = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return {
        f"{view}: {each['id']}: {each['help']}": [node["html"][:200] for node in each["nodes"][:4]]
        for each in results["violations"]
        if each["impact"] in ("serious", "critical")
    }
