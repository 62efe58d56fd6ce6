"""One server that is shared by all tests which do not change its process, credentials or limits."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from support.server import Server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A server that no test may stop, rotate the token of, or fill up."""
    directory = tmp_path_factory.mktemp("shared")
    (directory / "workspace").mkdir()
    server = Server(directory / "home", directory / "workspace")
    await server.start()
    yield server
    await server.close()
