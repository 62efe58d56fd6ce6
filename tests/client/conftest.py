"""Fixtures of tests that reach a real server, whole or over a wire that is cut."""

from collections.abc import AsyncIterator, Iterator

import pytest

from bullpen.client import Client
from support.intervals import shortened
from support.server import Server
from support.tcp_proxy import TcpProxy


@pytest.fixture(autouse=True)
def quick_retries() -> Iterator[None]:
    """Wait for a tenth of the delays between retries; test_backoff.py has their real lengths."""
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
    """A client whose every byte goes over the wire; the server must answer to the wire's name."""
    async with Client(wire.url, server.token) as client:
        yield client
