"""A TCP proxy to the server that can cut connections in either direction."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

Direction = str  # "up" to the server, "down" to the client
CutDecision = Callable[[Direction, int], bool]  # whether to cut instead of forwarding the nth piece


class TcpProxy:
    """Forwards bytes between clients and a server. A connection is cut when `should_cut` returns True."""

    def __init__(self, port: int) -> None:
        self.cuts = 0
        self.url = ""
        self.should_cut: CutDecision = lambda _direction, _nth: False
        self._port = port
        self._host_headers = (b"", b"")  # Host headers: of the proxy, and of the server
        self._writers: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["TcpProxy"]:
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._host_headers = (b"Host: 127.0.0.1:%d" % port, b"Host: 127.0.0.1:%d" % self._port)
        async with server:
            yield self
            for writer in self._writers:
                writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, to_server}
        self._writers |= both
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._forward("up", reader, to_server, both))
            tasks.create_task(self._forward("down", from_server, writer, both))
        self._writers -= both

    async def _forward(
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
                    data = data.replace(*self._host_headers)
                if self.should_cut(direction, nth):
                    self.cuts += 1
                    target.write(data[: len(data) // 2])  # so that the cut is in the middle of a frame
                    await target.drain()
                    break
                target.write(data)
                await target.drain()
                nth += 1
        for writer in both:
            writer.transport.abort()
