"""Fixtures: a data directory with keepers and children, whose processes end with the test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from keeper.harness import KeeperHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[KeeperHarness]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    harness = KeeperHarness(home)
    yield harness
    harness.close()


@pytest.fixture
async def connected(harness: KeeperHarness) -> AsyncIterator[KeeperHarness]:
    """Connect to an accepting keeper for the test."""
    async with harness.connect():
        yield harness
