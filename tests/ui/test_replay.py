"""A session played again in the page: chat, terminal and changes of a moment, found by mark or link."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from playwright.async_api import Browser, BrowserContext, FloatRect, Locator, Page, expect

from support.pages import log_in, new_profile
from support.server import Server
from support.session_client import SessionClient, define_scripted

SECONDS = 30.0
PHONE, SMALL_PHONE = (390, 844), (360, 640)
FINGER = 40  # pixels
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

    def __init__(self, server: Server, talk: SessionClient, terminal: dict[str, Any]) -> None:
        self.server = server
        self.talk = talk
        self._terminal = terminal["id"]
        self._path = f"{talk.path}/workers/{terminal['id']}/output"
        self._socket = f"/ws/session/{talk.id}/worker/{terminal['id']}"

    @classmethod
    async def make(cls, server: Server, lines: int = 0, **terminal: Any) -> "Past":
        await define_scripted(server, script={"prompts": [STORY]})
        talk = await SessionClient.begin(server, title="Played again")
        this = cls(server, talk, await server.new_terminal(talk.id, **terminal))
        await this.says("echo early-$((20 + 1))", b"early-21")
        await talk.prompt("change the notes")
        permission = await talk.open_permission()
        body = {"optionId": "yes"}
        await server.call("POST", f"{talk.path}/permissions/{permission['id']}", json=body)
        await talk.wait_for_event("turn_end")
        await this.says(f"seq {lines}; echo late-$((40 + 2))", b"late-42")
        await this.ends()
        return this

    async def says(self, command: str, answer: bytes) -> None:
        async with self.server.socket(self._socket) as socket:
            await socket.send(json.dumps({"type": "input", "data": command + "\n"}))
            await until(lambda: self._has(answer))

    async def ends(self) -> None:
        """Of a terminal that has ended it is written when it said what; before, up to a second later."""
        async with self.server.socket(self._socket) as socket:
            await socket.send(json.dumps({"type": "input", "data": "exit\n"}))
            await self.server.worker_in(self.talk.id, self._terminal, "exited")

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

    @classmethod
    async def on_a_phone(
        cls, browser: Browser, server: Server, session_id: str, size: tuple[int, int] = PHONE
    ) -> "Player":
        profile = await new_profile(browser, *size)
        await log_in(profile, server)
        page = await profile.new_page()
        await page.goto(f"{server.url}/#/replay/{session_id}")
        return cls(page)

    def mark(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name)

    def tab(self, name: str) -> Locator:
        return self.page.get_by_role("tab", name=name)

    async def fills_the_page_with(self, pane: str) -> None:
        """All between the tabs and the time line, from edge to edge."""
        shown = self.page.get_by_role("tabpanel")
        await expect(shown).to_have_count(1)
        await expect(shown).to_have_accessible_name(pane)
        assert (await box(shown))["width"] == PHONE[0]
        assert (await box(shown))["height"] > PHONE[1] * 0.7

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


async def box(of: Locator) -> FloatRect:
    found = await of.bounding_box()
    assert found
    return found


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
    await expect(player.log).to_contain_text("No messages yet")

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


async def test_a_replay_opens_on_the_first_thing_to_be_seen(device: BrowserContext, server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    await talk.run_turn("[[chunk answered]]")
    page = await device.new_page()
    await page.goto(f"{server.url}/#/replay/{talk.id}")
    player = Player(page)
    await expect(player.log).to_contain_text("[[chunk answered]]")

    alone = SessionClient(server, await server.new_session(title="Alone"))
    past = Past(server, alone, await server.new_terminal(alone.id))
    await past.says("echo alone-$((20 + 1))", b"alone-21")
    await past.ends()
    await page.goto(f"{server.url}/#/replay/{alone.id}")
    await expect(player.terminal).to_contain_text("#")


async def test_b2_a_session_is_played_from_its_beginning_to_its_end(
    device: BrowserContext, server: Server
) -> None:
    past = await Past.make(server)
    page = await device.new_page()
    await page.goto(f"{server.url}/#/replay/{past.talk.id}")
    player = Player(page)
    await expect(player.log).to_contain_text("No messages yet")
    await page.get_by_label("Speed").select_option("16×")
    await page.get_by_role("button", name="Play", exact=True).click()
    await player.shows_the_end()
    await expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


async def test_a_phone_shows_one_thing_at_a_time_and_keeps_to_it_while_one_scrubs(
    browser: Browser, server: Server
) -> None:
    past = await Past.make(server)
    player = await Player.on_a_phone(browser, server, past.talk.id)
    await expect(player.log).to_contain_text("No messages yet")
    await player.fills_the_page_with("Conversation")
    await expect(player.terminal).to_have_count(0)

    await player.tab("Terminals").click()
    await player.mark("Permission: Edit notes.md").click()
    await expect(player.terminal).to_contain_text("early-21")
    await expect(player.terminal).not_to_contain_text("late-42")
    await player.time.press("End")
    await expect(player.terminal).to_contain_text("late-42")
    await player.fills_the_page_with("Terminals")
    await expect(player.log).to_have_count(0)

    await player.tab("Terminals").press("ArrowRight")
    await expect(player.tab("Changes")).to_be_focused()
    await expect(player.changes).to_contain_text("two")
    await player.fills_the_page_with("Changes")
    await player.time.press("Home")
    await expect(player.changes).to_contain_text("No changes")
    await expect(player.tab("Changes")).to_have_attribute("aria-selected", "true")


async def test_a_phone_has_no_tabs_where_there_was_only_a_terminal(browser: Browser, server: Server) -> None:
    talk = SessionClient(server, await server.new_session(title="Alone"))
    past = Past(server, talk, await server.new_terminal(talk.id))
    await past.says("echo alone-$((20 + 1))", b"alone-21")
    await past.ends()
    player = await Player.on_a_phone(browser, server, talk.id)
    await player.time.press("End")
    await expect(player.terminal).to_contain_text("alone-21")
    await expect(player.page.get_by_role("tab")).to_have_count(0)


async def test_a_recorded_terminal_is_as_wide_as_a_phone_with_its_last_line_in_sight(
    browser: Browser, server: Server
) -> None:
    past = await Past.make(server, lines=200, cols=60, rows=90)
    player = await Player.on_a_phone(browser, server, past.talk.id)
    await player.time.press("End")
    await player.tab("Terminals").click()
    last = player.terminal.locator("> div").last
    await expect(player.terminal).to_contain_text("late-42")
    await expect(last).to_be_in_viewport(ratio=1)

    font = await player.terminal.evaluate("(rows) => parseFloat(getComputedStyle(rows).fontSize)")
    width = (await box(player.terminal))["width"]
    room = (await box(player.page.get_by_role("tabpanel")))["width"]
    assert width <= room < width * (font + 1.5) / font  # more would not leave its margins

    await player.page.set_viewport_size({"width": 700, "height": 390})
    await expect(player.terminal).to_have_css("font-size", "13px")
    await expect(last).to_be_in_viewport(ratio=1)


async def test_the_keys_of_the_player_are_two_rows_for_fingers(browser: Browser, server: Server) -> None:
    past = await Past.make(server)
    player = await Player.on_a_phone(browser, server, past.talk.id, SMALL_PHONE)
    names = ("Previous mark", "Play", "Next mark", "Copy link to this moment")
    keys = [player.page.get_by_role("button", name=name, exact=True) for name in names]
    keys += [player.page.get_by_label("Speed"), player.page.locator("label", has_text="Skip idle")]
    await expect(player.log).to_be_visible()
    boxes = [await box(key) for key in keys]
    assert len({each["y"] for each in boxes}) == 1
    assert min(min(each["width"], each["height"]) for each in boxes) >= FINGER
    line = await box(player.time)
    assert line["height"] >= FINGER
    assert line["y"] + line["height"] <= boxes[0]["y"]
    assert boxes[0]["y"] + boxes[0]["height"] <= SMALL_PHONE[1]

    await player.time.press("End")
    await player.tab("Terminals").click()
    await expect(player.terminal).to_contain_text("late-42")
    assert await box(player.time) == line
    assert await player.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
