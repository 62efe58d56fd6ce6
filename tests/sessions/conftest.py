"""A house for every test, and nothing left of it afterwards."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.server import end_processes_of
from support.server_without_web import ServerWithoutWeb


@pytest.fixture
async def closed_house(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    """With a scripted agent that does what its prompts say; to be opened, as often as one likes."""
    this = ServerWithoutWeb(tmp_path)
    this.define_agent()
    yield this
    await asyncio.to_thread(end_processes_of, this.home)


@pytest.fixture
async def house(closed_house: ServerWithoutWeb) -> AsyncIterator[ServerWithoutWeb]:
    async with closed_house.open():
        yield closed_house


@pytest.fixture
async def small_house(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    """Two sessions with a living agent, and no more; an agent is idle after half a second."""
    this = ServerWithoutWeb(tmp_path, idle_seconds=0.5, AGENT_MAX_SESSIONS="2")
    this.define_agent()
    yield this
    await asyncio.to_thread(end_processes_of, this.home)
