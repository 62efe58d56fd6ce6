"""Open every main view of the page, with a session that has content for each of them."""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from playwright.async_api import Page, expect

from support.pages import TerminalPage
from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted

SETTINGS = ("appearance", "keys", "notifications", "agents", "repositories", "devices", "tokens")
AGENT_TEXT = "# Found\n\nIt is a [needle](https://example.org).\n\n```python\nprint('needle')  # here\n```\n"
COST = {"amount": 1, "currency": "USD"}
USAGE = {"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": COST}
LONG = "".join(f"line {n}\n" for n in range(60))
CHANGE = {"type": "diff", "path": "/srv/long.txt", "oldText": "", "newText": LONG}
# All colours but black, which is a background colour: in the dark theme it is invisible.
COLORS = r"for n in 31 32 33 34 35 36 37 90 91 92 93 94 95 96 97; do printf '\033[%smword\033[m ' $n; done"


async def begin_session_for_views(workspace: Path, server: Server) -> SessionClient:
    """Create a session that has content for every view and an open permission."""
    repo = Repo(workspace)
    repo.write("readme.txt", "hello\nworld\n")
    repo.write("notes.md", "# Notes\n\n- one\n")
    tools = [{"do": "tool"}, {"do": "tool"}, {"do": "tool", "kind": "edit", "content": [CHANGE]}]
    first = [{"do": "update", "update": USAGE}, {"do": "plan"}, *tools, {"do": "chunk", "text": AGENT_TEXT}]
    await define_scripted(server, script={"prompts": [first, [{"do": "permission"}]]})
    session = await SessionClient.begin(server, title="Seen by axe")
    await session.run_turn("the needle, please")
    await print_colors(session)
    await session.prompt("and now?")
    await session.open_permission()
    return session


async def print_colors(session: SessionClient) -> None:
    """Print coloured text in a terminal and end it: a replay is complete only for an ended terminal."""
    terminal = await session.server.new_terminal(session.id)
    async with session.server.socket(f"/ws/session/{session.id}/worker/{terminal['id']}") as socket:
        await socket.send(json.dumps({"type": "input", "data": f"{COLORS}; exit\n"}))
        await session.server.worker_in(session.id, terminal["id"], "exited")


class ViewNavigator:
    """Opens the views of the page; each public method opens one and waits until it is shown."""

    names: tuple[str, ...] = (
        *("home", "chat", "diff", "files", "terminal", "replay"),
        *("mention", "inbox", "search", "usage", "palette"),
    )

    def __init__(self, page: Page, session: SessionClient) -> None:
        self._page = page
        self._session = session

    def all(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the methods by view, in an order in which each can follow the one before."""
        settings = {section: partial(self.settings, section) for section in SETTINGS}
        return {name: getattr(self, name) for name in self.names} | settings

    async def home(self) -> None:
        await self._show("")
        await expect(self._page.get_by_role("heading", name="Waiting for you")).to_be_visible()

    async def chat(self) -> None:
        await self._show(f"session/{self._session.id}")
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
        await self._wait_for_colors()

    async def replay(self) -> None:
        await self._show_end_of_replay()
        await self._wait_for_colors()

    async def mention(self) -> None:
        await self._show(f"session/{self._session.id}")
        await self._page.get_by_role("tab", name="Scripted").click()
        await self._page.get_by_label("Message", exact=True).fill("see @")
        await expect(self._page.get_by_role("option", name="notes.md")).to_be_visible()

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

    async def _wait_for_colors(self) -> None:
        await expect(self._page.locator(".xterm-rows .xterm-fg-15").first).to_be_visible()

    async def _show_end_of_replay(self) -> None:
        await self._show(f"replay/{self._session.id}")
        await self._page.get_by_role("slider", name="Time").press("End")
        await expect(self._page.get_by_role("log")).to_contain_text("It is a")

    async def _show(self, path: str) -> None:
        await self._page.keyboard.press("Escape")
        await expect(self._page.get_by_role("dialog")).to_have_count(0)
        await self._page.goto(f"{self._session.server.url}/#/{path}")


class PhoneViewNavigator(ViewNavigator):
    """Opens the views on a phone, which shows one view at a time and opens some of them differently."""

    names = (
        *("home", "start", "chat", "menu", "diff", "files", "terminal"),
        *("replay", "past_terminal", "past_changes", "mention", "inbox", "search", "usage", "palette"),
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
        await self._show_end_of_replay()

    async def past_terminal(self) -> None:
        await self._page.get_by_role("tab", name="Terminals").click()
        await self._wait_for_colors()

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
        await self._page.get_by_role("button", name="New tab").click()
        await self._page.get_by_role("menuitem", name="New terminal").click()
