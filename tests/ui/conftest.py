"""A real Chromium for all tests, and a page of it that is logged in to a real server of the test's own."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, async_playwright, expect

from support.chat_page import ChatPage
from support.page_errors import no_uncaught_errors
from support.pages import log_in, new_profile
from support.server import Server
from support.session_client import SessionClient, define_scripted

expect.set_options(timeout=60_000)  # a deadline, not a measurement: the machine may be busy


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here runs in the loop in which the browser was started."""
    for item in items:
        if item.path.parent == Path(__file__).parent and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    path = shutil.which("chromium")
    assert path, "chromium is missing; run scripts/test-tools"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser(chromium: Browser) -> AsyncIterator[Browser]:
    """Lend the browser without profiles; fail the test if a page of it had an uncaught error."""
    with no_uncaught_errors():
        yield chromium
        for profile in chromium.contexts:
            await profile.close()


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path, workspace: Path) -> AsyncIterator[Server]:
    """As everywhere, but in the browser's loop."""
    this = Server(tmp_path / "home", workspace)
    await this.start()
    yield this
    await this.close()


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(browser: Browser) -> BrowserContext:
    """A browser profile nobody has logged in with."""
    return await new_profile(browser)


@pytest_asyncio.fixture(loop_scope="session")
async def device(visitor: BrowserContext, server: Server) -> BrowserContext:
    """A browser profile that has used a login code."""
    await log_in(visitor, server)
    return visitor


@pytest_asyncio.fixture(loop_scope="session")
async def chat(device: BrowserContext, server: Server) -> ChatPage:
    await define_scripted(server)
    return await ChatPage.at(device, await SessionClient.begin(server))
