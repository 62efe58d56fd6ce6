"""Every main view of the page, and a session that has something to show in each of them."""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from playwright.async_api import Page, expect

from support.pages import TerminalPage
from support.repositories import Repo
from support.server import Server
from support.talk import Talk, define_scripted

SETTINGS = ("appearance", "keys", "notifications", "agents", "repositories", "devices", "tokens")
SAID = "# Found\n\nIt is a [needle](https://example.org).\n\n```python\nprint('needle')  # here\n```\n"
COST = {"amount": 1, "currency": "USD"}
USED = {"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": COST}
LONG = "".join(f"line {n}\n" for n in range(60))
CHANGE = {"type": "diff", "path": "/srv/long.txt", "oldText": "", "newText": LONG}
# All but black, which is for backgrounds: in the dark it is as dark as the screen.
COLORS = r"for n in 31 32 33 34 35 36 37 90 91 92 93 94 95 96 97; do printf '\033[%smword\033[m ' $n; done"


async def begin_shown_talk(workspace: Path, server: Server) -> Talk:
    """Begin a session that has something to show in every view and waits for a permission."""
    repo = Repo(workspace)
    repo.write("readme.txt", "hello\nworld\n")
    repo.write("notes.md", "# Notes\n\n- one\n")
    tools = [{"do": "tool"}, {"do": "tool"}, {"do": "tool", "kind": "edit", "content": [CHANGE]}]
    first = [{"do": "update", "update": USED}, {"do": "plan"}, *tools, {"do": "chunk", "text": SAID}]
    await define_scripted(server, script={"prompts": [first, [{"do": "permission"}]]})
    talk = await Talk.begin(server, title="Seen by axe")
    await talk.ask("the needle, please")
    await show_colors(talk)
    await talk.prompt("and now?")
    await talk.permission()
    return talk


async def show_colors(talk: Talk) -> None:
    """In a terminal that has ended: only of such a one a replay is sure to have everything."""
    terminal = await talk.server.new_terminal(talk.id)
    async with talk.server.socket(f"/ws/session/{talk.id}/worker/{terminal['id']}") as socket:
        await socket.send(json.dumps({"type": "input", "data": f"{COLORS}; exit\n"}))
        await talk.server.worker_in(talk.id, terminal["id"], "exited")


class Views:
    """How each view is come to; a method is a view."""

    names: tuple[str, ...] = (
        *("home", "chat", "diff", "files", "terminal", "replay"),
        *("inbox", "search", "usage", "palette"),
    )

    def __init__(self, page: Page, talk: Talk) -> None:
        self._page = page
        self._talk = talk

    def all(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """In an order in which one leads to the next."""
        settings = {section: partial(self.settings, section) for section in SETTINGS}
        return {name: getattr(self, name) for name in self.names} | settings

    async def home(self) -> None:
        await self._show("")
        await expect(self._page.get_by_role("heading", name="Waiting for you")).to_be_visible()

    async def chat(self) -> None:
        await self._show(f"session/{self._talk.id}")
        await expect(self._page.get_by_role("region", name="Permission")).to_be_visible()

    async def diff(self) -> None:
        await self._show_panel("Changes")
        changes = self._page.get_by_role("complementary", name="Changes")
        await changes.get_by_role("button", name="readme.txt").click()
        await expect(self._page.get_by_role("region", name="readme.txt")).to_contain_text("world")

    async def files(self) -> None:
        await self._show_panel("Files")
        files = self._page.get_by_role("complementary", name="Files")
        await expect(files.get_by_text("notes.md")).to_be_visible()

    async def terminal(self) -> None:
        await self._begin_terminal()
        await expect(self._page.locator(".xterm-rows")).to_contain_text("#")
        await TerminalPage(self._page).run(COLORS)
        await self._shows_colors()

    async def replay(self) -> None:
        await self._show_end()
        await self._shows_colors()

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

    async def _show_panel(self, name: str) -> None:
        panels = self._page.get_by_role("tablist", name="Panels")
        if not await panels.is_visible():
            await self._page.get_by_role("button", name="Show the panel").click()
        await panels.get_by_role("tab", name=name).click()

    async def _begin_terminal(self) -> None:
        await self._show("")
        await self._page.get_by_role("button", name="New terminal").click()

    async def _shows_colors(self) -> None:
        await expect(self._page.locator(".xterm-rows .xterm-fg-15").first).to_be_visible()

    async def _show_end(self) -> None:
        await self._show(f"replay/{self._talk.id}")
        await self._page.get_by_role("slider", name="Time").press("End")
        await expect(self._page.get_by_role("log")).to_contain_text("It is a")

    async def _show(self, place: str) -> None:
        await self._page.keyboard.press("Escape")
        await self._page.goto(f"{self._talk.server.url}/#/{place}")


class PhoneViews(Views):
    """A phone shows one thing at a time, and has other ways to it."""

    names = (
        *("home", "start", "chat", "menu", "diff", "files", "terminal"),
        *("replay", "past_terminal", "past_changes", "inbox", "search", "usage", "palette"),
    )

    async def home(self) -> None:
        await self._show("")
        await expect(self._page.get_by_role("link", name="Seen by axe")).to_be_visible()

    async def start(self) -> None:
        await self._show("new")
        await expect(self._page.get_by_label("Prompt")).to_be_visible()

    async def menu(self) -> None:
        await self._page.get_by_role("button", name="Session menu").click()
        await expect(self._page.get_by_role("menuitem", name="Replay")).to_be_visible()

    async def replay(self) -> None:
        await self._show_end()

    async def past_terminal(self) -> None:
        await self._page.get_by_role("tab", name="Terminals").click()
        await self._shows_colors()

    async def past_changes(self) -> None:
        await self._page.get_by_role("tab", name="Changes").click()
        await expect(self._page.get_by_role("region", name="Changes at this moment")).to_contain_text("world")

    async def palette(self) -> None:
        await self._page.get_by_role("button", name="Search", exact=True).click()
        await expect(self._page.get_by_role("combobox", name="Command")).to_be_visible()

    async def _show_panel(self, name: str) -> None:
        await self._page.keyboard.press("Escape")
        await self.menu()
        await self._page.get_by_role("menuitem", name=name).click()

    async def _begin_terminal(self) -> None:
        await self._page.get_by_role("button", name="Close panel").click()
        await self._page.get_by_role("button", name="New worker").click()
        await self._page.get_by_role("menuitem", name="New terminal").click()
