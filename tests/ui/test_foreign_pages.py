"""A page of another origin cannot frame Bullpen's page, control its window or send it messages."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import BrowserContext, Page, expect

from support.server import Server

DEADLINE = 30.0  # seconds
FRAME = """(address) => {
  const frame = document.createElement('iframe')
  frame.src = address
  document.body.append(frame)
  return new Promise((loaded) => frame.addEventListener('load', () => loaded(true)))
}"""
SEND_MESSAGES = """() => {
  for (const data of [{ type: 'removed', sessionId: 'x' }, { type: 'snapshot', seq: 0 }, '#/new', null])
    dispatchEvent(new MessageEvent('message', { data, origin: 'http://foreign.example' }))
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def foreign_page(device: BrowserContext) -> AsyncIterator[Page]:
    """Return a page of another server on this machine, in a browser that is logged in to Bullpen."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<body>hi</body>"
        )
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        page = await device.new_page()
        await page.goto(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        yield page


async def test_the_page_cannot_be_framed(foreign_page: Page, server: Server) -> None:
    async with asyncio.timeout(DEADLINE):
        assert await foreign_page.evaluate(FRAME, server.url)
    (frame,) = foreign_page.frames[1:]
    await expect(foreign_page.frame_locator("iframe").locator("#app")).to_have_count(0)
    assert not frame.url.startswith(server.url)


async def test_a_page_that_opens_ours_cannot_control_it_and_its_messages_change_nothing(
    foreign_page: Page, server: Server
) -> None:
    async with foreign_page.expect_popup() as opened:
        await foreign_page.evaluate("(address) => void (window.popup = open(address))", server.url)
    page = await opened.value
    light = page.get_by_role("button", name="Connection: Connected")
    await expect(light).to_be_visible()
    assert await page.evaluate("window.opener") is None
    async with asyncio.timeout(DEADLINE):
        # The popup is open, but the browser has cut it off from its opener.
        while not await foreign_page.evaluate("window.popup.closed"):
            await asyncio.sleep(0.05)
    address = page.url
    await page.evaluate(SEND_MESSAGES)
    await expect(light).to_be_visible()
    assert page.url == address
