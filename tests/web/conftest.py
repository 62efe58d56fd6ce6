"""One server for all tests that leave it as it was."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from support.server import Server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A server that nobody may stop, rotate or fill up."""
    place = tmp_path_factory.mktemp("house")
    (place / "workspace").mkdir()
    server = Server(place / "home", place / "workspace")
    await server.start()
    yield server
    await server.close()
