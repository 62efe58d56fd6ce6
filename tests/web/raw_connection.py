"""Send requests as bytes over a TCP or TLS connection, including requests that no HTTP client sends."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from support.server import SECONDS, Server


class RawConnection:
    """One connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def send_until_answered(self, data: bytes) -> tuple[int, bytes]:
        """Send the bytes repeatedly until the server responds or closes; return the status and the body."""
        async with asyncio.TaskGroup() as tasks:
            answered = tasks.create_task(self.read_response())
            with suppress(ConnectionError):
                while not answered.done():
                    await self.send(data)
                    await asyncio.sleep(0)  # lets the other task read: a small write never suspends this one
        return answered.result()

    async def read_status(self) -> int:
        """Return the status of the next response, or 0 if the server closes the connection first."""
        return (await self.read_response())[0]

    async def read_response(self) -> tuple[int, bytes]:
        """Return the status and the body of the next response, or 0 and b"" if the server closes."""
        try:
            async with asyncio.timeout(SECONDS):
                head = await self._reader.readuntil(b"\r\n\r\n")
                return int(head.split()[1]), await self._reader.readexactly(_content_length(head))
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0, b""

    async def read_until_closed(self) -> bytes:
        """Return all bytes that the server sends until it closes the connection."""
        received = b""
        with suppress(ConnectionError):
            async with asyncio.timeout(SECONDS):
                while part := await self._reader.read(1 << 16):
                    received += part
        return received

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def open_raw(server: Server, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawConnection]:
    connection = RawConnection(*await asyncio.open_connection("127.0.0.1", server.port, ssl=tls))
    try:
        yield connection
    finally:
        connection.close()


def request_head(server: Server, method_and_target: str, *fields: str) -> bytes:
    """Return a request line and header fields, without the empty line that ends them."""
    lines = (f"{method_and_target} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", *fields)
    return "".join(f"{line}\r\n" for line in lines).encode()


def authorization_field(server: Server) -> str:
    return f"Authorization: Bearer {server.token}"


def _content_length(head: bytes) -> int:
    lines = [line.lower() for line in head.splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith(b"content-length:"))
