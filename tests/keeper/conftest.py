"""A house of keepers, connected, whose processes end with the test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from keeper.house import House


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Nobody is connected yet."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    house = House(home)
    yield house
    house.close()


@pytest.fixture
async def open_house(house: House) -> AsyncIterator[House]:
    """Connected, with an accepting keeper."""
    async with house.server():
        yield house
