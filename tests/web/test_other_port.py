"""S-05 in a real browser: a server on another port gets our cookie, and can do nothing with it."""

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
from web.people import stranger

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Thief:
    """A server an agent might start: it answers with an empty page and keeps the cookies it is sent."""

    def __init__(self) -> None:
        self.cookies: list[str] = []
        self.port = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Thief"]:
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


class Addresses:
    """Every address a page asks for, by which road ever."""

    def __init__(self, page: Page) -> None:
        self.seen: list[str] = []
        page.on("request", self._note_request)
        page.on("websocket", self._note_socket)

    def _note_request(self, request: Request) -> None:
        self.seen.append(request.url)

    def _note_socket(self, socket: WebSocket) -> None:
        self.seen.append(socket.url)


async def test_a_server_on_another_port_gets_the_cookie_and_can_do_nothing_with_it(house: Server) -> None:
    async with chromium() as browser, Thief().serving() as thief:
        profile = await browser.new_context()
        page = await profile.new_page()
        addresses = Addresses(page)
        url = await login_url(house)
        await page.goto(url)
        async with asyncio.timeout(30):  # not wait_for_function, which our policy forbids
            while not (secret := await page.evaluate("localStorage.getItem('bullpen.secret')")):
                await asyncio.sleep(0.05)
            while len(addresses.seen) <= 3:
                await asyncio.sleep(0.05)
        # S-23: neither the code nor the secret is in any address the server or a log could see.
        code = url.partition("#code=")[2]
        assert not [seen for seen in addresses.seen if secret in seen or code in seen.partition("#")[0]]

        await page.goto(thief.url)
        (cookie,) = {cookie for cookie in thief.cookies if "bullpen=" in cookie}
        await _replay(house, cookie)
        await _try_from_page(page, house)


async def _replay(house: Server, cookie: str) -> None:
    """From a program of the thief: with the cookie, and pretending to be our page."""
    for origin in ({}, {"Origin": house.url}):
        async with stranger(house) as program:
            for method in ("GET", "POST", "DELETE"):
                answer = await program.request(method, "/api/sessions", headers={"Cookie": cookie, **origin})
                assert answer.status_code == 403, method
    address = f"ws://127.0.0.1:{house.port}/ws/dashboard"
    headers = {"Cookie": cookie, "Origin": house.url}
    async with connect(address, additional_headers=headers, proxy=None) as ws:
        await ws.send('{"type": "auth", "secret": "guessed"}')
        with pytest.raises(ConnectionClosed):
            await ws.recv()
        assert ws.close_code == 4401


TRIES = """async ({ours, socket}) => {
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


async def _try_from_page(page: Page, house: Server) -> None:
    """From a script of the thief's page, in the victim's browser."""
    where = {"ours": house.url, "socket": f"ws://127.0.0.1:{house.port}/ws/dashboard"}
    outcomes = await page.evaluate(TRIES, where)
    # An opaque answer has status 0: the script cannot even see that it was refused.
    assert [outcome for outcome in outcomes if outcome not in ("refused", "nothing stored", 0)] == []
