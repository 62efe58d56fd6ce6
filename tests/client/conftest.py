"""Fixtures: clients of a real server, directly or through a proxy that cuts connections."""

from collections.abc import AsyncIterator, Iterator

import pytest

from bullpen.client import Client
from support.intervals import shortened
from support.server import Server
from support.tcp_proxy import TcpProxy


@pytest.fixture(autouse=True)
def quick_retries() -> Iterator[None]:
    """Shorten the delays between retries to a tenth; test_backoff.py tests their real lengths."""
    with shortened(retry=0.1):
        yield


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with Client(server.url, server.token) as client:
        yield client


@pytest.fixture
async def wire(server: Server) -> AsyncIterator[TcpProxy]:
    async with TcpProxy(server.port).running() as wire:
        yield wire


@pytest.fixture
async def cut_client(wire: TcpProxy, server: Server) -> AsyncIterator[Client]:
    """Return a client of which every byte goes through the cutting proxy."""
    async with Client(wire.url, server.token) as client:
        yield client
