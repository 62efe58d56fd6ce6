"""The replay of a session: a mark or a link shows the chat, terminals and changes of a moment."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from playwright.async_api import Browser, BrowserContext, FloatRect, Locator, Page, expect

from bullpen.keeper.spool import SEGMENT_BYTES
from support.pages import log_in, new_profile
from support.server import Server
from support.session_client import SessionClient, define_scripted

DEADLINE = 30.0  # seconds
PHONE, SMALL_PHONE = (390, 844), (360, 640)
MIN_TOUCH_PIXELS = 40  # width and height of a control for fingers
CHANGE = {"type": "diff", "path": "/srv/notes.md", "oldText": "one\n", "newText": "one\ntwo\n"}
CALL = {"toolCallId": "edit", "title": "Edit notes.md", "kind": "edit", "content": [CHANGE]}
OPTIONS = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]
STEPS = [
    {"do": "chunk", "text": "Words before the question."},
    {"do": "ask", "method": "session/request_permission", "params": {"toolCall": CALL, "options": OPTIONS}},
    {"do": "sleep", "text": "0.3"},
    {"do": "chunk", "text": "Words after the answer."},
]


class RecordedSession:
    """A session with a permission, and a terminal with output before and after it."""

    def __init__(self, server: Server, talk: SessionClient, terminal: dict[str, Any]) -> None:
        self.server = server
        self.talk = talk
        self._terminal = terminal["id"]
        self._path = f"{talk.path}/workers/{terminal['id']}/output"
        self._socket = f"/ws/session/{talk.id}/worker/{terminal['id']}"

    @classmethod
    async def record(cls, server: Server, lines: int = 0, **terminal: Any) -> "RecordedSession":
        await define_scripted(server, script={"prompts": [STEPS]})
        talk = await SessionClient.begin(server, title="Played again")
        this = cls(server, talk, await server.new_terminal(talk.id, **terminal))
        await this.run("echo early-$((20 + 1))", b"early-21")
        await talk.prompt("change the notes")
        permission = await talk.open_permission()
        body = {"optionId": "yes"}
        await server.call("POST", f"{talk.path}/permissions/{permission['id']}", json=body)
        await talk.wait_for_event("turn_end")
        await this.run(f"seq {lines}; echo late-$((40 + 2))", b"late-42")
        await this.end_terminal()
        return this

    async def run(self, command: str, output: bytes) -> None:
        """Type a command and wait until the terminal has this output."""
        async with self.server.socket(self._socket) as socket:
            await socket.send(json.dumps({"type": "input", "data": command + "\n"}))
            await until(lambda: self._has(output))

    async def end_terminal(self) -> None:
        """End the terminal, because then its recording has the times of all output."""
        async with self.server.socket(self._socket) as socket:
            await socket.send(json.dumps({"type": "input", "data": "exit\n"}))
            await self.server.worker_in(self.talk.id, self._terminal, "exited")

    async def _has(self, words: bytes) -> bool:
        return words in (await self.server.http.get(self._path)).content


class Player:
    """The page of a replay."""

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

    async def check_fills_the_page(self, pane: str) -> None:
        """Check that this pane alone fills the space between the tabs and the time line."""
        panel = self.page.get_by_role("tabpanel")
        await expect(panel).to_have_count(1)
        await expect(panel).to_have_accessible_name(pane)
        assert (await box(panel))["width"] == PHONE[0]
        assert (await box(panel))["height"] > PHONE[1] * 0.7

    async def check_shows_the_permission(self) -> None:
        await expect(self.log).to_contain_text("Words before the question.")
        card = self.log.get_by_role("region", name="Permission")
        await expect(card.get_by_role("button", name="Allow")).to_be_disabled()
        await expect(self.log).not_to_contain_text("Words after the answer.")
        await expect(self.terminal).to_contain_text("early-21")
        await expect(self.terminal).not_to_contain_text("late-42")
        await expect(self.changes).to_contain_text("two")

    async def check_shows_the_end(self) -> None:
        await expect(self.log).to_contain_text("Words after the answer.")
        await expect(self.log.get_by_role("region", name="Permission")).to_have_count(0)
        await expect(self.terminal).to_contain_text("late-42")


async def box(locator: Locator) -> FloatRect:
    found = await locator.bounding_box()
    assert found
    return found


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not await condition():
            await asyncio.sleep(0.05)


async def test_a_moment_is_found_by_its_mark_and_by_its_link(device: BrowserContext, server: Server) -> None:
    recorded = await RecordedSession.record(server)
    page = await device.new_page()
    await page.goto(f"{server.url}/#/session/{recorded.talk.id}")
    await page.get_by_role("button", name="Session menu").click()
    await page.get_by_role("menuitem", name="Replay").click()
    player = Player(page)
    await expect(player.log).to_contain_text("No messages yet")

    await player.mark("Permission: Edit notes.md").click()
    await player.check_shows_the_permission()
    await player.mark("Copy link to this moment").click()
    await expect(page).to_have_url(
        f"{server.url}/#/replay/{recorded.talk.id}/{await player.time.input_value()}"
    )
    await page.reload()
    await player.check_shows_the_permission()

    await player.time.press("End")
    await player.check_shows_the_end()
    await player.mark("Permission: Edit notes.md").click()
    await player.check_shows_the_permission()
    assert await page.evaluate("window.violations") == []


async def test_a_replay_opens_at_the_first_visible_content(device: BrowserContext, server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    await talk.run_turn("[[chunk answered]]")
    page = await device.new_page()
    await page.goto(f"{server.url}/#/replay/{talk.id}")
    player = Player(page)
    await expect(player.log).to_contain_text("[[chunk answered]]")

    session = SessionClient(server, await server.new_session(title="Alone"))
    recorded = RecordedSession(server, session, await server.new_terminal(session.id))
    await recorded.run("echo alone-$((20 + 1))", b"alone-21")
    await recorded.end_terminal()
    await page.goto(f"{server.url}/#/replay/{session.id}")
    await expect(player.terminal).to_contain_text("#")


async def test_a_recording_without_its_beginning_is_shown_from_its_first_whole_line(
    device: BrowserContext, server: Server
) -> None:
    session = SessionClient(server, await server.new_session())
    recorded = RecordedSession(server, session, await server.new_terminal(session.id))
    long_line = f"stty -echo; yes | tr -d '\\n' | head -c {SEGMENT_BYTES + 200_000}; printf more-$((20 + 1))"
    continued = "read; printf more-$((30 + 1)); read; echo; echo whole-$((40 + 1))"
    await recorded.run(f"{long_line}; {continued}", b"more-21")
    await recorded.run("", b"more-31")
    await recorded.run("", b"whole-41")
    await recorded.end_terminal()
    first, second = sorted((server.home / "spool").rglob("*.bin"))
    first.unlink()  # as the keeper does when the recording exceeds its retention
    first.with_suffix(".idx").unlink()
    assert second.read_bytes().startswith(b"yyy")
    page = await device.new_page()
    await page.goto(f"{server.url}/#/replay/{session.id}")
    player = Player(page)
    await expect(player.terminal).to_contain_text("yyy")  # the first moment lies inside the line
    await player.time.press("End")
    await expect(player.terminal).to_contain_text("exit")
    await expect(player.terminal.locator("> div").first).to_have_text(re.compile(r"^whole-41\s*$"))


async def test_a_session_is_played_from_its_beginning_to_its_end(
    device: BrowserContext, server: Server
) -> None:
    recorded = await RecordedSession.record(server)
    page = await device.new_page()
    await page.goto(f"{server.url}/#/replay/{recorded.talk.id}")
    player = Player(page)
    await expect(player.log).to_contain_text("No messages yet")
    await page.get_by_label("Speed").select_option("16×")
    await page.get_by_role("button", name="Play", exact=True).click()
    await player.check_shows_the_end()
    await expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


async def test_a_phone_shows_one_pane_and_keeps_it_while_the_user_moves_in_time(
    browser: Browser, server: Server
) -> None:
    recorded = await RecordedSession.record(server)
    player = await Player.on_a_phone(browser, server, recorded.talk.id)
    await expect(player.log).to_contain_text("No messages yet")
    await player.check_fills_the_page("Conversation")
    await expect(player.terminal).to_have_count(0)

    await player.tab("Terminals").click()
    await player.mark("Permission: Edit notes.md").click()
    await expect(player.terminal).to_contain_text("early-21")
    await expect(player.terminal).not_to_contain_text("late-42")
    await player.time.press("End")
    await expect(player.terminal).to_contain_text("late-42")
    await player.check_fills_the_page("Terminals")
    await expect(player.log).to_have_count(0)

    await player.tab("Terminals").press("ArrowRight")
    await expect(player.tab("Changes")).to_be_focused()
    await expect(player.changes).to_contain_text("two")
    await player.check_fills_the_page("Changes")
    await player.time.press("Home")
    await expect(player.changes).to_contain_text("No changes")
    await expect(player.tab("Changes")).to_have_attribute("aria-selected", "true")


async def test_a_phone_has_no_tabs_if_the_session_had_only_a_terminal(
    browser: Browser, server: Server
) -> None:
    talk = SessionClient(server, await server.new_session(title="Alone"))
    recorded = RecordedSession(server, talk, await server.new_terminal(talk.id))
    await recorded.run("echo alone-$((20 + 1))", b"alone-21")
    await recorded.end_terminal()
    player = await Player.on_a_phone(browser, server, talk.id)
    await player.time.press("End")
    await expect(player.terminal).to_contain_text("alone-21")
    await expect(player.page.get_by_role("tab")).to_have_count(0)


async def test_a_recorded_terminal_fills_the_width_of_a_phone_and_shows_its_last_line(
    browser: Browser, server: Server
) -> None:
    recorded = await RecordedSession.record(server, lines=200, cols=60, rows=90)
    player = await Player.on_a_phone(browser, server, recorded.talk.id)
    await player.time.press("End")
    await player.tab("Terminals").click()
    last = player.terminal.locator("> div").last
    await expect(player.terminal).to_contain_text("late-42")
    await expect(last).to_be_in_viewport(ratio=1)

    font = await player.terminal.evaluate("(rows) => parseFloat(getComputedStyle(rows).fontSize)")
    width = (await box(player.terminal))["width"]
    room = (await box(player.page.get_by_role("tabpanel")))["width"]
    assert width <= room < width * (font + 1.5) / font  # a larger font would be wider than the page

    await player.page.set_viewport_size({"width": 700, "height": 390})
    await expect(player.terminal).to_have_css("font-size", "13px")
    await expect(last).to_be_in_viewport(ratio=1)


async def test_the_controls_of_the_player_are_large_enough_for_fingers(
    browser: Browser, server: Server
) -> None:
    recorded = await RecordedSession.record(server)
    player = await Player.on_a_phone(browser, server, recorded.talk.id, SMALL_PHONE)
    names = ("Previous mark", "Play", "Next mark", "Copy link to this moment")
    keys = [player.page.get_by_role("button", name=name, exact=True) for name in names]
    keys += [player.page.get_by_label("Speed"), player.page.locator("label", has_text="Skip idle")]
    await expect(player.log).to_be_visible()
    boxes = [await box(key) for key in keys]
    assert len({each["y"] for each in boxes}) == 1
    assert min(min(each["width"], each["height"]) for each in boxes) >= MIN_TOUCH_PIXELS
    line = await box(player.time)
    assert line["height"] >= MIN_TOUCH_PIXELS
    assert line["y"] + line["height"] <= boxes[0]["y"]
    assert boxes[0]["y"] + boxes[0]["height"] <= SMALL_PHONE[1]

    await player.time.press("End")
    await player.tab("Terminals").click()
    await expect(player.terminal).to_contain_text("late-42")
    assert await box(player.time) == line
    assert await player.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
