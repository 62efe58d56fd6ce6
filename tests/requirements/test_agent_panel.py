"""Document 000, the agent panel: requirements 1 to 12."""

import asyncio
import colorsys
import re
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import psutil
import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from support.chat_page import ChatPage
from support.pages import log_in, new_profile
from support.server import Server
from support.session_client import SessionClient, define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

MAX_BUFFER_BYTES = 1_000_000
FIRST_KEY = "all => all[0]?.dataset.key"
# Notes by the clock of the page when it opens the socket of the dashboard, and how often it has lost one.
# The jitter of a wait is 0, until the test changes it.
WATCH_ATTEMPTS = """
    window.random = 1
    Math.random = () => window.random
    window.attempts = []
    window.losses = 0
    window.WebSocket = class extends window.WebSocket {
      constructor(url) {
        super(url)
        if (!url.endsWith('/ws/dashboard')) return
        window.attempts.push(Date.now())
        this.addEventListener('close', () => window.losses++)
      }
    }
"""
EXPECTED_WAITS = [1, 2, 4, 8, 16, 30, 30, 15]  # seconds; jitter halves the last one
STEP_MS = 250
# The first entry whose end is below the upper edge of the conversation, and its distance from this edge.
FIRST_VISIBLE = """log => {
    const edge = log.getBoundingClientRect().top
    const all = [...log.querySelectorAll('[data-key]')]
    const first = all.find((entry) => entry.getBoundingClientRect().bottom > edge + 1)
    return [first.dataset.key, Math.round(first.getBoundingClientRect().top - edge)]
}"""


async def page_with_clock(browser: Browser, server: Server) -> Page:
    """Open the page, which is connected, in a new profile whose clock the test controls."""
    profile = await new_profile(browser)
    await log_in(profile, server)
    await profile.clock.install()
    await profile.add_init_script(WATCH_ATTEMPTS)
    page = await profile.new_page()
    await page.goto(server.url)
    await expect(page.get_by_role("button", name="Connection: Connected")).to_be_visible()
    return page


async def hue_of_indicator(page: Page, label: str) -> float:
    """Wait until the indicator has a label; return the hue of its mark in degrees: 0 is red, 120 is green."""
    mark = page.get_by_role("button", name=f"Connection: {label}").locator("[aria-hidden]")
    colour = await mark.evaluate("mark => getComputedStyle(mark).color")
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    return colorsys.rgb_to_hsv(red, green, blue)[0] * 360


async def test_r1_each_agent_has_a_record_of_its_process_its_connection_and_its_output(
    talk: SessionClient,
) -> None:
    worker = await talk.worker()
    assert psutil.pid_exists(worker["pid"])
    assert (worker["status"], worker["run"]) == ("connected", 1)
    await talk.run_turn("[[chunk hello]]")
    assert await talk.agent_text() == "hello"


async def test_r2_the_first_command_creates_the_agent_which_starts_and_is_connected(
    shared: Server, repo: dict[str, Any]
) -> None:
    body = {"type": "worktree", "repositoryId": repo["id"]}
    talk = SessionClient(shared, await shared.call("POST", "/api/sessions", 201, json=body))
    await talk.prompt("[[chunk hello]]", 202)
    assert (await talk.worker())["status"] in ("starting", "connected", "running")
    await talk.wait_for_event("agent_message", text="hello")
    types = [each["type"] for each in await talk.events()]
    assert types.index("worker_spawning") < types.index("worker_ready") < types.index("user_prompt")
    await talk.wait_for_event("turn_end")
    assert (await talk.worker())["status"] == "connected"
    await shared.call("DELETE", talk.path, 200)


async def test_r3_the_status_is_one_of_six_words(shared: Server) -> None:
    script = {"on": {"initialize": [{"do": "sleep", "text": "600"}]}}
    await define_scripted(shared, "waiting", script)
    await shared.call(
        "PUT", "/api/agents/broken", 200, json={"name": "Broken", "kind": "acp", "command": ["false"]}
    )
    session = await shared.new_session()
    seen = {session["agentStatus"]}
    workers = f"/api/sessions/{session['id']}/workers"
    for agent_id, state in (("waiting", "spawning"), ("broken", "failed")):
        added = await shared.call("POST", workers, 201, json={"type": "agent", "agentId": agent_id})
        seen.add((await shared.worker_in(session["id"], added["id"], state))["status"])
    ended = await shared.call("POST", workers, 201, json={"type": "terminal", "command": ["true"]})
    seen.add((await shared.worker_in(session["id"], ended["id"], "exited"))["status"])
    talk = await SessionClient.begin(shared)
    seen.add((await talk.worker())["status"])
    await talk.prompt("[[wait_cancel]]")
    await talk.wait_for_event("worker_activity", activity="active")
    seen.add((await talk.worker())["status"])
    assert seen == {"idle", "starting", "connected", "running", "exited", "error"}
    for path in (talk.path, f"/api/sessions/{session['id']}"):
        await shared.call("DELETE", path, 200)


async def test_r4_the_page_connects_when_it_is_opened(device: BrowserContext, talk: SessionClient) -> None:
    page = await ChatPage.at(device, talk)
    await page.wait_for_connection("connected")
    await page.page.close()


async def test_r5_the_page_reconnects_after_1_2_4_and_at_most_30_seconds(
    browser: Browser, shared: Server
) -> None:
    page = await page_with_clock(browser, shared)
    await page.clock.pause_at(datetime.now() + timedelta(minutes=1))
    await shared.kill()
    async with asyncio.timeout(120):
        while not await page.evaluate("losses"):
            continue
        times = [await page.evaluate("Date.now()")]
        for seconds in EXPECTED_WAITS:
            if len(times) == len(EXPECTED_WAITS) - 1:
                await page.evaluate("random = 0")  # jitter shortens the wait after the next attempt by half
            await page.clock.run_for(1000 * seconds - STEP_MS)
            known = len(times)
            while len(times) == known:
                await page.clock.run_for(STEP_MS)
                while await page.evaluate("losses < attempts.length"):
                    continue
                times[1:] = (await page.evaluate("attempts"))[1:]
    waits = [after - before for before, after in pairwise(times)]
    for wait, seconds in zip(waits, EXPECTED_WAITS, strict=True):
        assert 1000 * seconds <= wait <= 1000 * seconds + STEP_MS, waits
    await shared.start()
    await page.clock.resume()
    await page.clock.fast_forward(30_000)
    await expect(page.get_by_role("button", name="Connection: Connected")).to_be_visible()
    await page.context.close()


async def test_r6_the_indicator_is_green_yellow_while_reconnecting_and_red_while_disconnected(
    browser: Browser, shared: Server
) -> None:
    page = await page_with_clock(browser, shared)
    assert 90 < await hue_of_indicator(page, "Connected") < 160
    await shared.kill()
    assert 30 < await hue_of_indicator(page, "Reconnecting") < 60
    await page.clock.fast_forward(30_000)
    assert await hue_of_indicator(page, "Disconnected") < 15
    await shared.start()
    await page.clock.fast_forward(30_000)
    assert 90 < await hue_of_indicator(page, "Connected") < 160
    await page.context.close()


async def test_r7_output_is_appended_and_shown_at_once(device: BrowserContext, talk: SessionClient) -> None:
    chat = await ChatPage.at(device, talk)
    await talk.prompt("[[chunk first]] [[wait_cancel]]")
    await expect(chat.log).to_contain_text("first")
    assert not [each for each in await talk.events() if each["type"] == "turn_end"]
    await chat.page.close()


async def test_r8_the_buffer_of_a_worker_keeps_the_newest_megabyte(talk: SessionClient) -> None:
    cell = "f'\\x1b[48;2;{n % 256};{x};{n // 256}m{x % 10}'"
    script = f"for n in range(1500): print(*({cell} for x in range(79)), sep='')\nprint('the end')"
    worker = await talk.server.new_terminal(talk.id, command=["python3", "-c", script])
    await talk.server.worker_in(talk.id, worker["id"], "exited")
    path = f"/ws/session/{talk.id}/worker/{worker['id']}"
    async with talk.server.socket(path) as ws:
        history = str(await ws.recv())
    text = history.encode().decode("unicode_escape")
    assert "the end" in text
    assert len(text) <= MAX_BUFFER_BYTES + 1000  # of the frame around the data
    recorded = await talk.server.http.get(f"{talk.path}/workers/{worker['id']}/output")
    assert len(recorded.content) > MAX_BUFFER_BYTES  # the recording keeps more


async def test_r9_the_page_holds_at_most_200_entries_and_loads_older_ones(
    device: BrowserContext, talk: SessionClient
) -> None:
    await talk.run_turn(" ".join(f"[[tool title=number-{n}]]" for n in range(300)))
    chat = await ChatPage.at(device, talk)
    await expect(chat.log).to_contain_text("number-299")
    assert await chat.entries.count() <= 200
    await expect(chat.log).not_to_contain_text("number-0 ")
    for _ in range(8):
        before = await chat.entries.evaluate_all(FIRST_KEY)
        await chat.log.evaluate("log => log.scrollTo(0, 0)")
        if await chat.log.get_by_text("number-0", exact=True).count():
            break
        await expect(chat.entries.first).not_to_have_attribute("data-key", str(before))
    assert await chat.entries.count() <= 200
    await chat.page.close()


async def test_r10_the_draft_the_scroll_position_and_the_open_tab_survive_a_reload(
    device: BrowserContext, talk: SessionClient
) -> None:
    await talk.run_turn(" ".join(f"[[tool title=number-{n}]]" for n in range(100)))
    await talk.server.new_terminal(talk.id, name="Beside it")
    chat = await ChatPage.at(device, talk)
    field = chat.page.get_by_label("Message", exact=True)
    await field.fill("not sent yet")
    await chat.log.evaluate("log => log.scrollTo(0, log.scrollHeight / 2)")
    await until_stored(chat.page, "not sent yet")
    before = await chat.log.evaluate(FIRST_VISIBLE)
    await chat.page.reload()
    await expect(field).to_have_value("not sent yet")
    await expect(chat.log.locator(f"[data-key='{before[0]}']")).to_be_in_viewport()
    assert await chat.log.evaluate(FIRST_VISIBLE) == before
    tab = chat.page.get_by_role("tab", name="Beside it")
    await tab.click()
    await expect(tab).to_have_attribute("aria-selected", "true")
    await chat.page.goto(f"{talk.server.url}/#/")
    await chat.page.reload()
    await chat.page.goto(f"{talk.server.url}/#/session/{talk.id}")
    await expect(tab).to_have_attribute("aria-selected", "true")
    await chat.page.close()


async def until_stored(page: Page, draft: str) -> None:
    """Wait until the page has stored its state, which it does half a second after the last change."""
    async with asyncio.timeout(30):
        while draft not in await page.evaluate("JSON.stringify({ ...localStorage, ...sessionStorage })"):
            await asyncio.sleep(0.05)


async def test_r11_closing_the_panel_can_end_its_agents(device: BrowserContext, shared: Server) -> None:
    talk = await SessionClient.begin(shared, onLastDisconnect="terminate")
    pid = (await talk.worker())["pid"]
    chat = await ChatPage.at(device, talk)
    await chat.page.close(run_before_unload=True)
    ended = await talk.wait_for_event("session_end")
    assert ended["data"]["reason"] == "last_disconnect"
    assert (await talk.worker())["state"] == "terminated"
    async with asyncio.timeout(60):
        while psutil.pid_exists(pid):
            await asyncio.sleep(0.05)


async def test_r12_a_page_that_is_left_tells_the_server_which_ends_the_agents(
    device: BrowserContext, shared: Server
) -> None:
    talk = await SessionClient.begin(shared, onLastDisconnect="terminate")
    chat = await ChatPage.at(device, talk)
    await chat.page.goto("about:blank")
    ended = await talk.wait_for_event("session_end")
    assert ended["data"]["reason"] == "last_disconnect"
    assert (await talk.worker())["state"] == "terminated"
    assert f"{talk.path}/leave" in [line["path"] for line in shared.audit_lines()]
    await chat.page.close()
