"""The browser notifies a user who does not look at a session that the session waits for an answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from playwright.async_api import BrowserContext, WebSocket, expect

from support import browser as browsers
from support.page_errors import no_uncaught_errors
from support.pages import log_in, new_profile
from support.server import Server
from support.session_client import SessionClient, define_scripted

# The browser's own notifications, and a record of what the page asked it to show.
RECORD_NOTIFICATIONS = """
    window.shown = []
    window.Notification = class extends window.Notification {
      constructor(title, options) {
        super(title, options)
        window.shown.push({ notification: this, words: [title, options.body] })
      }
    }
"""

# Whether the page has stored that the user turned notifications on.
STORED = "localStorage.getItem('bullpen.view.notifications')?.includes('true')"

# A headless browser never hides a tab, so the test changes the visibility.
SET_VISIBILITY = """state => {
    Object.defineProperty(document, 'visibilityState', { get: () => state, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def notified(server: Server) -> AsyncIterator[BrowserContext]:
    """Return a logged-in profile of the complete Chromium: the headless shell denies all notifications."""
    async with browsers.chromium("chromium") as browser:
        profile = await new_profile(browser)
        await log_in(profile, server)
        await profile.grant_permissions(["notifications"])
        with no_uncaught_errors():
            yield profile


async def test_a_notification_about_another_session_opens_that_session(
    notified: BrowserContext, server: Server
) -> None:
    await define_scripted(server)
    before, talk = [
        await SessionClient.begin(server, title=title) for title in ("an old thing", "paint the fence")
    ]
    await before.prompt("[[permission title=old]]")
    await before.wait_for_event("permission", status="pending")
    page = await notified.new_page()
    await page.add_init_script(RECORD_NOTIFICATIONS)
    await page.goto(f"{server.url}/#/settings/notifications")
    checkbox = page.get_by_role("checkbox", name="Notify me in this browser")
    await checkbox.check()
    async with asyncio.timeout(30):
        while not await page.evaluate(STORED):
            await asyncio.sleep(0.05)
    await page.reload()
    await expect(checkbox).to_be_checked()
    await expect(page.get_by_role("link", name="an old thing")).to_be_visible()

    await talk.prompt("[[permission title=work]]")
    await expect(page.get_by_role("link", name="Inbox")).to_contain_text("2")
    shown: list[Any] = []
    async with asyncio.timeout(30):
        while not shown:
            await asyncio.sleep(0.1)
            shown = await page.evaluate("window.shown.map(({ words }) => words)")
    assert [title for title, _ in shown] == ["Permission: paint the fence"]
    await page.evaluate("window.shown[0].notification.onclick()")
    await expect(page.get_by_role("heading", name="paint the fence")).to_be_visible()

    await page.goto(f"{server.url}/#/settings/notifications")
    await checkbox.uncheck()
    await page.reload()
    await expect(checkbox).not_to_be_checked()


async def test_the_page_tells_the_server_whether_a_session_is_visible(
    device: BrowserContext, server: Server
) -> None:
    session = await server.new_session(title="watched")
    await server.new_terminal(session["id"])
    page = await device.new_page()
    visible: list[bool] = []
    closed: list[WebSocket] = []

    def record_message(sent: str | bytes) -> None:
        message = json.loads(sent)
        if message["type"] == "looking":
            visible.append(message["visible"])

    def record_close(socket: WebSocket) -> None:  # Playwright sets an attribute, so not closed.append
        closed.append(socket)

    def watch_socket(socket: WebSocket) -> None:
        if socket.url.endswith(f"/ws/session/{session['id']}"):
            socket.on("framesent", record_message)
            socket.on("close", record_close)

    async def until_reported(expected: list[bool]) -> None:
        async with asyncio.timeout(30):
            while visible != expected:
                await asyncio.sleep(0.05)

    page.on("websocket", watch_socket)
    await page.goto(f"{server.url}/#/session/{session['id']}")
    await expect(page.get_by_role("heading", name="watched")).to_be_visible()
    await until_reported([True])
    await page.evaluate(SET_VISIBILITY, "hidden")
    await until_reported([True, False])
    await page.evaluate(SET_VISIBILITY, "visible")
    await until_reported([True, False, True])
    await page.goto(f"{server.url}/#/inbox")
    async with asyncio.timeout(30):
        while not closed:
            await asyncio.sleep(0.05)


async def test_the_page_says_what_to_do_when_the_browser_denies_notifications(
    device: BrowserContext, server: Server
) -> None:
    page = await device.new_page()
    await page.add_init_script("Object.defineProperty(Notification, 'permission', { get: () => 'denied' })")
    await page.goto(f"{server.url}/#/settings/notifications")
    await expect(page.get_by_role("checkbox", name="Notify me in this browser")).to_be_disabled()
    await expect(page.get_by_text("Allow it in the browser’s settings")).to_be_visible()
