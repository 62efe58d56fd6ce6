"""A server that sends given responses, valid HTTP or not, and a pool of connections to it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bullpen.client.http import ConnectionPool


class ScriptedHttpServer:
    """Sends the next of its responses to every request, and closes the connection after the last."""

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
async def scripted_http(*answers: bytes) -> AsyncIterator[tuple[ScriptedHttpServer, ConnectionPool]]:
    server = ScriptedHttpServer(answers)
    async with asyncio.timeout(30), await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        pool = ConnectionPool(server.url, None)
        yield server, pool
        await pool.close()
