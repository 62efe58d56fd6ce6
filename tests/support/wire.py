"""A wire to the server that can be cut at any moment, in either direction."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

Direction = str  # "up" to the server, "down" to the client
Scissors = Callable[[Direction, int], bool]  # whether to cut instead of passing the nth piece on


class Wire:
    """Passes bytes between clients and a server until told to cut."""

    def __init__(self, port: int) -> None:
        self.cuts = 0
        self.url = ""
        self.scissors: Scissors = lambda _direction, _nth: False
        self._port = port
        self._names = (b"", b"")  # ours, and the one the server answers to
        self._open: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def laid(self) -> AsyncIterator["Wire"]:
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._names = (b"Host: 127.0.0.1:%d" % port, b"Host: 127.0.0.1:%d" % self._port)
        async with server:
            yield self
            for writer in self._open:
                writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, back}
        self._open |= both
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pass("up", reader, back, both))
            tasks.create_task(self._pass("down", there, writer, both))
        self._open -= both

    async def _pass(
        self,
        direction: Direction,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        both: set[asyncio.StreamWriter],
    ) -> None:
        nth = 0
        with suppress(OSError):
            while data := await source.read(16384):
                if direction == "up":
                    data = data.replace(*self._names)
                if self.scissors(direction, nth):
                    self.cuts += 1
                    target.write(data[: len(data) // 2])  # in the middle of a frame
                    await target.drain()
                    break
                target.write(data)
                await target.drain()
                nth += 1
        for writer in both:
            writer.transport.abort()
