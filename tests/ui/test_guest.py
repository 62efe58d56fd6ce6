"""What `bullpen share` prints, opened by somebody else: one session to look at, and nothing besides."""

import json

from playwright.async_api import BrowserContext, Page, Request, WebSocket, expect

from support.server import Server
from support.session_client import SessionClient, define_scripted


async def shared_link(talk: SessionClient) -> str:
    made = await talk.server.call("POST", f"{talk.path}/share", 201, json={"expiresIn": 600})
    url: str = made["url"]
    return url


async def worked(server: Server) -> SessionClient:
    await define_scripted(server)
    talk = await SessionClient.begin(server, title="for your eyes")
    await talk.run_turn("[[chunk what we found]]")
    terminal = await server.new_terminal(talk.id)
    async with server.socket(f"/ws/session/{talk.id}/worker/{terminal['id']}?format=json") as ws:
        await ws.send('{"type": "input", "data": "echo to-$((40 + 2))\\r"}')
        said = ""
        while "to-42" not in said:
            said += json.loads(await ws.recv()).get("data", "")
    return talk


class Guest:
    """A fresh profile at a link, and what it asked the server for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: set[str] = set()
        page.on("request", self._note)
        page.on("websocket", self._connected)

    def _note(self, request: Request) -> None:
        if "/api/" in request.url:
            self.asked.add(f"{request.method} {request.url.split('/api')[1].split('?')[0]}")

    def _connected(self, socket: WebSocket) -> None:
        self.asked.add(f"WS {socket.url}")


async def test_a_share_link_shows_its_session_and_nothing_else(
    visitor: BrowserContext, server: Server
) -> None:
    talk = await worked(server)
    other = await server.new_session(title="not for you")
    guest = Guest(await visitor.new_page())
    page = guest.page
    await page.goto(await shared_link(talk))
    await expect(page.get_by_role("heading", name="for your eyes")).to_be_visible()
    await expect(page.get_by_role("log")).to_contain_text("what we found")
    await expect(page.locator(".xterm-rows")).to_contain_text("to-42")
    await expect(page).to_have_title("for your eyes · Bullpen")
    for role, name in (("navigation", "Sessions"), ("button", "New session"), ("textbox", "Message")):
        await expect(page.get_by_role(role, name=name)).to_have_count(0)  # type: ignore[arg-type]
    await expect(page.get_by_role("link")).to_have_count(0)
    await page.keyboard.press("Control+K")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.reload()
    await expect(page.get_by_role("log")).to_contain_text("what we found")
    assert {each.split("/")[0] for each in guest.asked} == {"GET "}
    assert all(f"/sessions/{talk.id}" in each for each in guest.asked), guest.asked
    assert await page.evaluate("Object.keys(localStorage).filter((key) => /secret/.test(key))") == []
    assert await page.evaluate("window.violations") == []
    # With the same key another session stays closed, and so does the house.
    await page.goto(page.url.replace(talk.id, other["id"]))
    await expect(page.get_by_text("This link does not work")).to_be_visible()
    await page.goto(server.url)
    await expect(page.get_by_text("This browser is not logged in")).to_be_visible()


async def test_a_share_link_that_was_taken_back_says_so(visitor: BrowserContext, server: Server) -> None:
    talk = SessionClient(server, await server.new_session(title="shown for a moment"))
    link = await shared_link(talk)
    page = await visitor.new_page()
    await page.goto(link)
    await expect(page.get_by_role("heading", name="shown for a moment")).to_be_visible()
    (token,) = [
        each for each in (await server.call("GET", "/api/tokens"))["tokens"] if each["kind"] == "share"
    ]
    await server.call("DELETE", f"/api/tokens/{token['id']}", 204)
    await page.reload()
    await expect(page.get_by_text("This link does not work")).to_be_visible()
    await expect(page.get_by_text("shown for a moment")).to_have_count(0)
