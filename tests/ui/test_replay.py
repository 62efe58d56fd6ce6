"""A session played again in the page: chat, terminal and changes of a moment, found by mark or link."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from playwright.async_api import BrowserContext, Locator, Page, expect

from support.server import Server
from support.talk import Talk, define_scripted

SECONDS = 30.0
CHANGE = {"type": "diff", "path": "/srv/notes.md", "oldText": "one\n", "newText": "one\ntwo\n"}
CALL = {"toolCallId": "edit", "title": "Edit notes.md", "kind": "edit", "content": [CHANGE]}
OPTIONS = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]
STORY = [
    {"do": "chunk", "text": "Words before the question."},
    {"do": "ask", "method": "session/request_permission", "params": {"toolCall": CALL, "options": OPTIONS}},
    {"do": "sleep", "text": "0.3"},
    {"do": "chunk", "text": "Words after the answer."},
]


class Past:
    """A session in which an agent asked, while a terminal said something before and after."""

    def __init__(self, server: Server, talk: Talk, terminal: dict[str, Any]) -> None:
        self.server = server
        self.talk = talk
        self._path = f"{talk.path}/workers/{terminal['id']}/output"
        self._socket = f"/ws/session/{talk.id}/worker/{terminal['id']}"

    @classmethod
    async def make(cls, server: Server) -> "Past":
        await define_scripted(server, script={"prompts": [STORY]})
        talk = await Talk.begin(server, title="Played again")
        this = cls(server, talk, await server.new_terminal(talk.id))
        await this._says("echo early-$((20 + 1))", b"early-21")
        await talk.prompt("change the notes")
        permission = await talk.permission()
        body = {"optionId": "yes"}
        await server.call("POST", f"{talk.path}/permissions/{permission['id']}", json=body)
        await talk.seen("turn_end")
        await this._says("echo late-$((40 + 2))", b"late-42")
        return this

    async def _says(self, command: str, answer: bytes) -> None:
        async with self.server.socket(self._socket) as socket:
            await socket.send(json.dumps({"type": "input", "data": command + "\n"}))
            await until(lambda: self._has(answer))

    async def _has(self, words: bytes) -> bool:
        return words in (await self.server.http.get(self._path)).content


class Player:
    """The page of the replay, and what it shows."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.log = page.get_by_role("log", name="Conversation at this moment")
        self.terminal = page.locator(".xterm-rows")
        self.changes = page.get_by_role("region", name="Changes at this moment")
        self.time = page.get_by_role("slider", name="Time")

    def mark(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name)

    async def shows_the_question(self) -> None:
        await expect(self.log).to_contain_text("Words before the question.")
        card = self.log.get_by_role("region", name="Permission")
        await expect(card.get_by_role("button", name="Allow")).to_be_disabled()
        await expect(self.log).not_to_contain_text("Words after the answer.")
        await expect(self.terminal).to_contain_text("early-21")
        await expect(self.terminal).not_to_contain_text("late-42")
        await expect(self.changes).to_contain_text("two")

    async def shows_the_end(self) -> None:
        await expect(self.log).to_contain_text("Words after the answer.")
        await expect(self.log.get_by_role("region", name="Permission")).to_have_count(0)
        await expect(self.terminal).to_contain_text("late-42")


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SECONDS):
        while not await condition():
            await asyncio.sleep(0.05)


async def test_a_moment_is_found_by_its_mark_and_by_its_link(device: BrowserContext, server: Server) -> None:
    past = await Past.make(server)
    page = await device.new_page()
    await page.goto(f"{server.url}/#/session/{past.talk.id}")
    await page.get_by_role("button", name="Session menu").click()
    await page.get_by_role("menuitem", name="Replay").click()
    player = Player(page)
    await expect(player.log).to_contain_text("Nothing was said yet")

    await player.mark("Permission: Edit notes.md").click()
    await player.shows_the_question()
    await player.mark("Copy link to this moment").click()
    await expect(page).to_have_url(f"{server.url}/#/replay/{past.talk.id}/{await player.time.input_value()}")
    await page.reload()
    await player.shows_the_question()

    await player.time.press("End")
    await player.shows_the_end()
    await player.mark("Permission: Edit notes.md").click()
    await player.shows_the_question()
    assert await page.evaluate("window.violations") == []


async def test_b2_a_session_is_played_from_its_beginning_to_its_end(
    device: BrowserContext, server: Server
) -> None:
    past = await Past.make(server)
    page = await device.new_page()
    await page.goto(f"{server.url}/#/replay/{past.talk.id}")
    player = Player(page)
    await expect(player.log).to_contain_text("Nothing was said yet")
    await page.get_by_label("Speed").select_option("16×")
    await page.get_by_role("button", name="Play", exact=True).click()
    await player.shows_the_end()
    await expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
