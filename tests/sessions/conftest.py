"""A house for every test, and nothing left of it afterwards."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.quiet_house import QuietHouse
from support.server import end_processes_of


@pytest.fixture
async def closed_house(tmp_path: Path) -> AsyncIterator[QuietHouse]:
    """With a scripted agent that does what its prompts say; to be opened, as often as one likes."""
    this = QuietHouse(tmp_path)
    this.define()
    yield this
    await asyncio.to_thread(end_processes_of, this.home)


@pytest.fixture
async def house(closed_house: QuietHouse) -> AsyncIterator[QuietHouse]:
    async with closed_house.open():
        yield closed_house


@pytest.fixture
async def small_house(tmp_path: Path) -> AsyncIterator[QuietHouse]:
    """Two sessions with a living agent, and no more; an agent is idle after half a second."""
    this = QuietHouse(tmp_path, idle_seconds=0.5, AGENT_MAX_SESSIONS="2")
    this.define()
    yield this
    await asyncio.to_thread(end_processes_of, this.home)
