"""A house for every test, and nothing left of it afterwards."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.quiet_house import QuietHouse
from support.server import end_processes_of


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[QuietHouse]:
    """With a scripted agent that does what its prompts say."""
    this = QuietHouse(tmp_path)
    this.define()
    async with this.open():
        yield this
    await asyncio.to_thread(end_processes_of, this.home)
