"""Requests as bytes on a connection of their own, for what no HTTP client would send."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from support.server import SECONDS, Server


class Raw:
    """One connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def flood(self, data: bytes) -> tuple[int, bytes]:
        """Send these bytes again and again until the server answers or closes; return its answer."""
        async with asyncio.TaskGroup() as tasks:
            answered = tasks.create_task(self.answer())
            with suppress(ConnectionError):
                while not answered.done():
                    await self.send(data)
                    await asyncio.sleep(0)  # lets the answer be read: a small write never waits
        return answered.result()

    async def status(self) -> int:
        """Return the status of the next answer, or 0 if the server closes without one."""
        return (await self.answer())[0]

    async def answer(self) -> tuple[int, bytes]:
        """Return the status and the body of the next answer, or 0 if the server closes without one."""
        try:
            async with asyncio.timeout(SECONDS):
                head = await self._reader.readuntil(b"\r\n\r\n")
                return int(head.split()[1]), await self._reader.readexactly(_length(head))
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0, b""

    async def rest(self) -> bytes:
        """Return what comes until the server closes the connection."""
        received = b""
        with suppress(ConnectionError):
            async with asyncio.timeout(SECONDS):
                while part := await self._reader.read(1 << 16):
                    received += part
        return received

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def raw(server: Server, tls: ssl.SSLContext | None = None) -> AsyncIterator[Raw]:
    connection = Raw(*await asyncio.open_connection("127.0.0.1", server.port, ssl=tls))
    try:
        yield connection
    finally:
        connection.close()


def head(server: Server, first: str, *fields: str) -> bytes:
    """A first line and the fields after it, without the empty line that ends them."""
    lines = (f"{first} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", *fields)
    return "".join(f"{line}\r\n" for line in lines).encode()


def credential(server: Server) -> str:
    return f"Authorization: Bearer {server.token}"


def _length(head: bytes) -> int:
    lines = [line.lower() for line in head.splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith(b"content-length:"))
