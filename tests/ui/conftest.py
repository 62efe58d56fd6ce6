"""Fixtures: one Chromium, one server and one logged-in profile for all tests of a process.

With the mark `own_server` or `intervals` a test has a new server and a new profile: it needs a server that
has just started, or shorter waits, or it changes the profile for good: its permissions, its scripts, or its
clock, which Playwright sets for all pages of a profile.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from support import browser as browsers
from support.chat_page import ChatPage
from support.page_errors import no_uncaught_errors
from support.pages import log_in, new_profile, restore_login
from support.server import Server
from support.session_client import SessionClient, define_scripted
from support.shared_server import SharedServer, server_of_test, shared_server

expect.set_options(timeout=60_000)  # a deadline, not a measurement: the machine may be busy


@dataclass(frozen=True)
class SharedLogin:
    """A browser profile with the cookie of a login, and the secret that its pages need beside the cookie.

    One page stays open: it changes what the profile has stored without loading a page for each test.
    """

    profile: BrowserContext
    page: Page
    secret: str


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run every asynchronous test of this directory in the event loop in which the browser was started."""
    for item in items:
        if item.path.parent == Path(__file__).parent and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    async with browsers.chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def server_of_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    """Return the server of the browser tests: a login stays in it, which other tests do not expect."""
    yield from shared_server(tmp_path_factory.mktemp("shared"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_login(chromium: Browser, server_of_process: SharedServer) -> SharedLogin:
    """Return a browser profile that keeps the files of the page, and its login to the shared server."""
    profile = await new_profile(chromium)
    async with server_of_process.lent():
        secret = await log_in(profile, server_of_process)
        page = await profile.new_page()
        await page.goto(
            f"{server_of_process.url}/manifest.webmanifest"
        )  # Bullpen's page would store something
        await server_of_process.keep_logins()
    return SharedLogin(profile, page, secret)


@pytest_asyncio.fixture(loop_scope="session")
async def browser(chromium: Browser, shared_login: SharedLogin) -> AsyncIterator[Browser]:
    """Return the browser without other profiles. Fail the test if one of its pages had an uncaught error."""
    with no_uncaught_errors():
        yield chromium
        for profile in chromium.contexts:
            if profile is not shared_login.profile:
                await profile.close()
        for page in shared_login.profile.pages:
            if page is not shared_login.page:
                await page.close()


@pytest_asyncio.fixture(loop_scope="session")
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    """Return the server of tests/conftest.py, used in the event loop of the browser."""
    async with server_of_test(request, tmp_path) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(browser: Browser) -> BrowserContext:
    """Return a browser profile that is not logged in."""
    return await new_profile(browser)


@pytest_asyncio.fixture(loop_scope="session")
async def device(browser: Browser, shared_login: SharedLogin, server: Server) -> BrowserContext:
    """Return a browser profile that has used a login code, and has stored nothing else."""
    if isinstance(server, SharedServer):
        await restore_login(shared_login.page, shared_login.secret)
        return shared_login.profile
    profile = await new_profile(browser)
    await log_in(profile, server)
    return profile


@pytest_asyncio.fixture(loop_scope="session")
async def chat(device: BrowserContext, server: Server) -> ChatPage:
    await define_scripted(server)
    return await ChatPage.at(device, await SessionClient.begin(server))
