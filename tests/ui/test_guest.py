"""A guest who opens the link of `bullpen share` sees one session and can change nothing."""

import json

from playwright.async_api import BrowserContext, Page, Request, WebSocket, expect

from support.server import Server
from support.session_client import SessionClient, define_scripted


async def share_link(talk: SessionClient) -> str:
    share = await talk.server.call("POST", f"{talk.path}/share", 201, json={"expiresIn": 600})
    url: str = share["url"]
    return url


async def begin_finished_talk(server: Server) -> SessionClient:
    await define_scripted(server)
    talk = await SessionClient.begin(server, title="for your eyes")
    await talk.run_turn("[[chunk what we found]]")
    terminal = await server.new_terminal(talk.id)
    async with server.socket(f"/ws/session/{talk.id}/worker/{terminal['id']}") as ws:
        await ws.send('{"type": "input", "data": "echo to-$((40 + 2))\\r"}')
        output = ""
        while "to-42" not in output:
            output += json.loads(await ws.recv()).get("data", "")
    return talk


class Guest:
    """A page in a new profile that records its requests to the server."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: set[str] = set()
        page.on("request", self._record_request)
        page.on("websocket", self._record_socket)

    def _record_request(self, request: Request) -> None:
        if "/api/" in request.url:
            self.requests.add(f"{request.method} {request.url.split('/api')[1].split('?')[0]}")

    def _record_socket(self, socket: WebSocket) -> None:
        self.requests.add(f"WS {socket.url}")


async def test_a_share_link_shows_only_its_session(visitor: BrowserContext, server: Server) -> None:
    talk = await begin_finished_talk(server)
    other = await server.new_session(title="not for you")
    guest = Guest(await visitor.new_page())
    page = guest.page
    await page.goto(await share_link(talk))
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
    assert {each.split("/")[0] for each in guest.requests} == {"GET "}
    assert all(f"/sessions/{talk.id}" in each for each in guest.requests), guest.requests
    assert await page.evaluate("Object.keys(localStorage).filter((key) => /secret/.test(key))") == []
    assert await page.evaluate("window.violations") == []
    # The same token opens neither another session nor the list of sessions.
    await page.goto(page.url.replace(talk.id, other["id"]))
    await expect(page.get_by_text("This link does not work")).to_be_visible()
    await page.goto(server.url)
    await expect(page.get_by_text("This browser is not logged in")).to_be_visible()


async def test_a_revoked_share_link_shows_that_it_does_not_work(
    visitor: BrowserContext, server: Server
) -> None:
    talk = SessionClient(server, await server.new_session(title="shown for a moment"))
    link = await share_link(talk)
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
