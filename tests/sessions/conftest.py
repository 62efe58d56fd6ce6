"""Fixtures: sessions without a web server. Every process is ended after the test."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.server import end_processes_of
from support.server_without_web import ServerWithoutWeb


@pytest.fixture
async def closed_server(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    """Define a scripted agent that follows its prompts. The test opens the sessions, also several times."""
    server = ServerWithoutWeb(tmp_path)
    server.define_agent()
    yield server
    await asyncio.to_thread(end_processes_of, server.home)


@pytest.fixture
async def local_server(closed_server: ServerWithoutWeb) -> AsyncIterator[ServerWithoutWeb]:
    async with closed_server.open():
        yield closed_server


@pytest.fixture
async def small_server(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    """Allow two sessions with a living agent. A session ends after half a second without activity."""
    server = ServerWithoutWeb(tmp_path, idle_seconds=0.5, AGENT_MAX_SESSIONS="2")
    server.define_agent()
    yield server
    await asyncio.to_thread(end_processes_of, server.home)
