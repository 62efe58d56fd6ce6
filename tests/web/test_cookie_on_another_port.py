"""In a real browser: a server on another port receives the cookie, but gains no access with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, Request, WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from support.browser import chromium
from support.pages import login_url
from support.server import Server
from web.clients import anonymous_client

pytestmark = pytest.mark.asyncio(loop_scope="session")


class OtherServer:
    """A server that an agent could start: it serves an empty page and records the cookies it receives."""

    def __init__(self) -> None:
        self.cookies: list[str] = []
        self.port = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["OtherServer"]:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.cookies += [line[8:] for line in head.split("\r\n") if line.lower().startswith("cookie: ")]
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<title>hi</title>"
        )
        await writer.drain()
        writer.close()


class RequestedAddresses:
    """The addresses of all requests and WebSockets of a page."""

    def __init__(self, page: Page) -> None:
        self.seen: list[str] = []
        page.on("request", self._note_request)
        page.on("websocket", self._note_socket)

    def _note_request(self, request: Request) -> None:
        self.seen.append(request.url)

    def _note_socket(self, socket: WebSocket) -> None:
        self.seen.append(socket.url)


async def test_a_server_on_another_port_gets_the_cookie_but_no_access(shared_server: Server) -> None:
    async with chromium() as browser, OtherServer().serving() as other_server:
        profile = await browser.new_context()
        page = await profile.new_page()
        addresses = RequestedAddresses(page)
        url = await login_url(shared_server)
        await page.goto(url)
        # wait_for_function needs eval, which the content security policy forbids.
        async with asyncio.timeout(30):
            while not (secret := await page.evaluate("localStorage.getItem('bullpen.secret')")):
                await asyncio.sleep(0.05)
            while len(addresses.seen) <= 3:
                await asyncio.sleep(0.05)
        # Neither the code nor the secret is in a part of an address that a server or a log receives.
        code = url.partition("#code=")[2]
        assert not [seen for seen in addresses.seen if secret in seen or code in seen.partition("#")[0]]

        await page.goto(other_server.url)
        (cookie,) = {cookie for cookie in other_server.cookies if "bullpen=" in cookie}
        await _request_with_cookie(shared_server, cookie)
        await _request_from_page(page, shared_server)


async def _request_with_cookie(shared_server: Server, cookie: str) -> None:
    """Send the cookie from a program, with and without the Origin of the page."""
    for origin in ({}, {"Origin": shared_server.url}):
        async with anonymous_client(shared_server) as program:
            for method in ("GET", "POST", "DELETE"):
                answer = await program.request(method, "/api/sessions", headers={"Cookie": cookie, **origin})
                assert answer.status_code == 403, method
    address = f"ws://127.0.0.1:{shared_server.port}/ws/dashboard"
    headers = {"Cookie": cookie, "Origin": shared_server.url}
    async with connect(address, additional_headers=headers, proxy=None) as ws:
        await ws.send('{"type": "auth", "secret": "guessed"}')
        with pytest.raises(ConnectionClosed):
            await ws.recv()
        assert ws.close_code == 4401


ATTEMPTS = """async ({ours, socket}) => {
  const outcomes = []
  for (const how of [{credentials: 'include'}, {credentials: 'include', mode: 'no-cors'},
                     {credentials: 'include', headers: {'X-Bullpen-Secret': 'guessed'}}])
    outcomes.push(await fetch(`${ours}/api/sessions`, how).then((answer) => answer.status, () => 'refused'))
  outcomes.push(await new Promise((resolve) => {
    const ws = new WebSocket(socket)
    ws.onopen = () => resolve('open')
    ws.onerror = () => resolve('refused')
  }))
  outcomes.push(localStorage.getItem('bullpen.secret') ?? 'nothing stored')
  return outcomes
}"""


async def _request_from_page(page: Page, shared_server: Server) -> None:
    """Send requests from a script of the other server's page, in the user's browser."""
    addresses = {"ours": shared_server.url, "socket": f"ws://127.0.0.1:{shared_server.port}/ws/dashboard"}
    outcomes = await page.evaluate(ATTEMPTS, addresses)
    # An opaque response has status 0: the script cannot read whether it was refused.
    assert [outcome for outcome in outcomes if outcome not in ("refused", "nothing stored", 0)] == []
