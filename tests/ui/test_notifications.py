"""The browser tells a person who looks elsewhere that something waits."""

import asyncio
import json
from typing import Any

from playwright.async_api import BrowserContext, WebSocket, expect

from support.server import Server
from support.session_client import SessionClient, define_scripted

# The browser's own, and what it was asked to show.
NOTED = """
    window.shown = []
    window.Notification = class extends window.Notification {
      constructor(title, options) {
        super(title, options)
        window.shown.push({ notification: this, words: [title, options.body] })
      }
    }
"""

# A browser without a window never hides a tab.
VISIBILITY = """state => {
    Object.defineProperty(document, 'visibilityState', { get: () => state, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
}"""


async def test_what_waits_in_another_session_is_told_and_leads_there(
    device: BrowserContext, server: Server
) -> None:
    await define_scripted(server)
    before, talk = [
        await SessionClient.begin(server, title=title) for title in ("an old thing", "paint the fence")
    ]
    await before.prompt("[[permission title=old]]")
    await before.wait_for_event("permission", status="pending")
    await device.grant_permissions(["notifications"])
    page = await device.new_page()
    await page.add_init_script(NOTED)
    await page.goto(f"{server.url}/#/settings/notifications")
    wish = page.get_by_role("checkbox", name="Notify me in this browser")
    await wish.check()
    await page.reload()
    await expect(wish).to_be_checked()
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
    await wish.uncheck()
    await page.reload()
    await expect(wish).not_to_be_checked()


async def test_the_server_is_told_whether_a_session_is_looked_at(
    device: BrowserContext, server: Server
) -> None:
    session = await server.new_session(title="watched")
    await server.new_terminal(session["id"])
    page = await device.new_page()
    said: list[bool] = []
    closed: list[WebSocket] = []

    def note(sent: str | bytes) -> None:
        message = json.loads(sent)
        if message["type"] == "looking":
            said.append(message["visible"])

    def note_end(socket: WebSocket) -> None:  # Playwright marks the function it is given
        closed.append(socket)

    def connected(socket: WebSocket) -> None:
        if socket.url.endswith(f"/ws/session/{session['id']}"):
            socket.on("framesent", note)
            socket.on("close", note_end)

    async def until(wanted: list[bool]) -> None:
        async with asyncio.timeout(30):
            while said != wanted:
                await asyncio.sleep(0.05)

    page.on("websocket", connected)
    await page.goto(f"{server.url}/#/session/{session['id']}")
    await expect(page.get_by_role("heading", name="watched")).to_be_visible()
    await until([True])
    await page.evaluate(VISIBILITY, "hidden")
    await until([True, False])
    await page.evaluate(VISIBILITY, "visible")
    await until([True, False, True])
    await page.goto(f"{server.url}/#/inbox")
    async with asyncio.timeout(30):
        while not closed:
            await asyncio.sleep(0.05)


async def test_a_browser_that_refuses_says_what_to_do(device: BrowserContext, server: Server) -> None:
    page = await device.new_page()
    await page.add_init_script("Object.defineProperty(Notification, 'permission', { get: () => 'denied' })")
    await page.goto(f"{server.url}/#/settings/notifications")
    await expect(page.get_by_role("checkbox", name="Notify me in this browser")).to_be_disabled()
    await expect(page.get_by_text("Allow it in the browser’s settings")).to_be_visible()
