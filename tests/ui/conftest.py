"""Fixtures: one Chromium, one server and one logged-in profile for all tests of a process.

With the mark `own_server` or `intervals` a test has a new server and a new profile: it needs a server that
has just started, or shorter waits, or it changes the profile for good: its permissions, its scripts, or its
clock, which Playwright sets for all pages of a profile.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from support import browser as browsers
from support.chat_page import ChatPage
from support.intervals import marked
from support.page_errors import no_uncaught_errors
from support.pages import log_in, new_profile, restore_login
from support.server import Server
from support.session_client import SessionClient, define_scripted
from support.shared_server import SharedServer

expect.set_options(timeout=60_000)  # a deadline, not a measurement: the machine may be busy


@dataclass(frozen=True)
class SharedLogin:
    """A browser profile with the cookie of a login, and the secret that its pages need beside the cookie."""

    profile: BrowserContext
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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SharedServer]:
    this = SharedServer(tmp_path_factory.mktemp("shared"))
    await this.start()
    yield this
    await this.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_login(chromium: Browser, shared_server: SharedServer) -> SharedLogin:
    """Return a browser profile that keeps the files of the page, and its login to the shared server."""
    profile = await new_profile(chromium)
    return SharedLogin(profile, await log_in(profile, shared_server))


@pytest_asyncio.fixture(loop_scope="session")
async def browser(chromium: Browser, shared_login: SharedLogin) -> AsyncIterator[Browser]:
    """Return the browser without other profiles. Fail the test if one of its pages had an uncaught error."""
    with no_uncaught_errors():
        yield chromium
        for profile in chromium.contexts:
            if profile is not shared_login.profile:
                await profile.close()
        for page in shared_login.profile.pages:
            await page.close()


@pytest_asyncio.fixture(loop_scope="session")
async def server(
    shared_server: SharedServer, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Server]:
    """Return a running server without sessions and settings, started in the event loop of the browser."""
    intervals = marked(request)
    if intervals or request.node.get_closest_marker("own_server"):
        (tmp_path / "workspace").mkdir()
        this = Server(tmp_path / "home", tmp_path / "workspace", intervals)
        await this.start()
        yield this
        await this.close()
    else:
        await shared_server.reset()
        yield shared_server
        shared_server.check_log()


@pytest.fixture
def workspace(server: Server) -> Path:
    return server.workspace


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(browser: Browser) -> BrowserContext:
    """Return a browser profile that is not logged in."""
    return await new_profile(browser)


@pytest_asyncio.fixture(loop_scope="session")
async def device(browser: Browser, shared_login: SharedLogin, server: Server) -> BrowserContext:
    """Return a browser profile that has used a login code, and has stored nothing else."""
    if isinstance(server, SharedServer):
        await restore_login(shared_login.profile, server, shared_login.secret)
        return shared_login.profile
    profile = await new_profile(browser)
    await log_in(profile, server)
    return profile


@pytest_asyncio.fixture(loop_scope="session")
async def chat(device: BrowserContext, server: Server) -> ChatPage:
    await define_scripted(server)
    return await ChatPage.at(device, await SessionClient.begin(server))
