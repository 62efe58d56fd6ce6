"""One server for each process, whose repository has the scripted agent as its default agent."""

import subprocess
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from support import browser as browsers
from support.intervals import in_environment
from support.pages import log_in, new_profile
from support.server import Server
from support.session_client import SessionClient, define_scripted

expect.set_options(timeout=60_000)  # a deadline, not a measurement: the machine may be busy


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    directory = tmp_path_factory.mktemp("requirements")
    (directory / "workspace").mkdir()
    # A session whose last page was left ends soon, so that tests need not wait for it.
    server = Server(directory / "home", directory / "workspace", in_environment(viewer_grace_after_leave=0.5))
    await server.start()
    await define_scripted(server)
    yield server
    await server.close()


async def register(server: Server, name: str, expect: int = 201) -> dict[str, Any]:
    """Create a repository in the workspace root and register it with the scripted agent."""
    path = server.workspace / name
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    created: dict[str, Any] = await server.call("POST", "/api/repositories", expect, json={"path": str(path)})
    await server.call("PATCH", f"/api/repositories/{created['id']}", 200, json={"agentId": "scripted"})
    return created


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def repo(shared: Server) -> dict[str, Any]:
    return await register(shared, "repo")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with browsers.chromium() as started:
        yield started


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def device(browser: Browser, shared: Server) -> BrowserContext:
    """A browser profile that is logged in."""
    profile = await new_profile(browser)
    await log_in(profile, shared)
    return profile


@pytest_asyncio.fixture(loop_scope="session")
async def talk(shared: Server, repo: dict[str, Any]) -> AsyncIterator[SessionClient]:
    """A session as document 001 creates it: only a repository is named, and its agent is started."""
    session = await shared.call("POST", "/api/sessions", 201, json={"repoId": repo["id"]})
    client = SessionClient(shared, session)
    await client.wait_for_event("agent_session")
    yield client
    await shared.call("DELETE", client.path, 200)
