"""A server that answers what it is told to, good HTTP or bad, and a pool of connections to it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bullpen.client.http import ConnectionPool


class Scripted:
    """Answers every request with the next of its answers, and closes a connection after the last."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self.url = ""
        self._answers = list(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while self._answers:
            try:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            except asyncio.IncompleteReadError:
                break
            writer.write(self._answers.pop(0))
            await writer.drain()
        writer.close()


@asynccontextmanager
async def scripted(*answers: bytes) -> AsyncIterator[tuple[Scripted, ConnectionPool]]:
    other = Scripted(answers)
    async with asyncio.timeout(30), await asyncio.start_server(other.serve, "127.0.0.1", 0) as listening:
        other.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        pool = ConnectionPool(other.url, None)
        yield other, pool
        await pool.close()
