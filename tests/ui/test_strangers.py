"""S-27: a page of somebody else can neither frame ours, nor hold on to its window, nor tell it anything."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import BrowserContext, Page, expect

from support.server import Server

SECONDS = 30.0
FRAME = """(address) => {
  const frame = document.createElement('iframe')
  frame.src = address
  document.body.append(frame)
  return new Promise((loaded) => frame.addEventListener('load', () => loaded(true)))
}"""
TELL = """() => {
  for (const data of [{ type: 'removed', sessionId: 'x' }, { type: 'snapshot', seq: 0 }, '#/new', null])
    dispatchEvent(new MessageEvent('message', { data, origin: 'http://stranger.example' }))
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(device: BrowserContext) -> AsyncIterator[Page]:
    """A page of another server on this machine, in the browser of somebody who is logged in."""

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


async def test_s27_our_page_is_not_framed(stranger: Page, server: Server) -> None:
    async with asyncio.timeout(SECONDS):
        assert await stranger.evaluate(FRAME, server.url)
    (frame,) = stranger.frames[1:]
    await expect(stranger.frame_locator("iframe").locator("#app")).to_have_count(0)
    assert not frame.url.startswith(server.url)


async def test_s27_who_opens_our_page_does_not_hold_it_and_cannot_tell_it_anything(
    stranger: Page, server: Server
) -> None:
    async with stranger.expect_popup() as opened:
        await stranger.evaluate("(address) => void (window.theirs = open(address))", server.url)
    page = await opened.value
    light = page.get_by_role("button", name="Connection: Connected")
    await expect(light).to_be_visible()
    assert await page.evaluate("window.opener") is None
    async with asyncio.timeout(SECONDS):
        while not await stranger.evaluate("window.theirs.closed"):  # cut off, not closed
            await asyncio.sleep(0.05)
    address = page.url
    await page.evaluate(TELL)
    await expect(light).to_be_visible()
    assert page.url == address
