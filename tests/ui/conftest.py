"""Fixtures: one Chromium for all tests, and browser profiles that use a real server of each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from support import browser as browsers
from support.chat_page import ChatPage
from support.intervals import marked
from support.page_errors import no_uncaught_errors
from support.pages import log_in, new_profile
from support.server import Server
from support.session_client import SessionClient, define_scripted

expect.set_options(timeout=60_000)  # a deadline, not a measurement: the machine may be busy


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run every asynchronous test of this directory in the event loop in which the browser was started."""
    for item in items:
        if item.path.parent == Path(__file__).parent and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    async with browsers.chromium() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def browser(chromium: Browser) -> AsyncIterator[Browser]:
    """Return the browser without profiles. Fail the test if one of its pages had an uncaught error."""
    with no_uncaught_errors():
        yield chromium
        for profile in chromium.contexts:
            await profile.close()


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path, workspace: Path, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """Return a running server, started in the event loop of the browser."""
    this = Server(tmp_path / "home", workspace, marked(request))
    await this.start()
    yield this
    await this.close()


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(browser: Browser) -> BrowserContext:
    """Return a browser profile that is not logged in."""
    return await new_profile(browser)


@pytest_asyncio.fixture(loop_scope="session")
async def device(visitor: BrowserContext, server: Server) -> BrowserContext:
    """Return a browser profile that has used a login code."""
    await log_in(visitor, server)
    return visitor


@pytest_asyncio.fixture(loop_scope="session")
async def chat(device: BrowserContext, server: Server) -> ChatPage:
    await define_scripted(server)
    return await ChatPage.at(device, await SessionClient.begin(server))
