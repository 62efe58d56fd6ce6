"""Fixtures: sessions without a web server. Every process is ended after the test."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.quiet_house import QuietHouse
from support.server import end_processes_of


@pytest.fixture
async def closed_house(tmp_path: Path) -> AsyncIterator[QuietHouse]:
    """Define a scripted agent that follows its prompts. The test opens the sessions, also several times."""
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
    """Allow two sessions with a living agent. A session ends after half a second without activity."""
    this = QuietHouse(tmp_path, idle_seconds=0.5, AGENT_MAX_SESSIONS="2")
    this.define()
    yield this
    await asyncio.to_thread(end_processes_of, this.home)
