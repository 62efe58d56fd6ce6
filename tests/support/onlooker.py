"""A viewer of a session that keeps only how far it is: every number once, in order, over any cuts."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from websockets.asyncio.client import ClientConnection

from .server import Server
from .viewer import LOST


class _Event(msgspec.Struct):
    seq: int
    type: str


class _Frame(msgspec.Struct):
    type: str
    events: list[_Event] = []


_read = msgspec.json.Decoder(_Frame)


class Onlooker:
    """Follows from the first event on; `pause` makes it slow, clearing `reading` stops it."""

    def __init__(self, server: Server, session_id: str, *, pause: float = 0.0) -> None:
        self.session_id = session_id
        self.last = 0
        self.types: list[str] = []
        self.cuts = 0
        self.pause = pause
        self.here = asyncio.Event()  # it has been told something
        self.reading = asyncio.Event()
        self.reading.set()
        self._grown = asyncio.Condition()
        self._server = server
        self._path = f"/ws/session/{session_id}"

    @asynccontextmanager
    async def watching(self) -> AsyncIterator["Onlooker"]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._run())
            yield self
            task.cancel()

    async def until(self, seq: int) -> None:
        async with self._grown:
            await self._grown.wait_for(lambda: self.last >= seq)

    async def until_seen(self, type: str) -> None:
        async with self._grown:
            await self._grown.wait_for(lambda: type in self.types)

    async def _run(self) -> None:
        while True:
            try:
                # One frame in memory: what is not read waits in the kernel, then at the server.
                async with self._server.socket(self._path, max_queue=1, ping_interval=None) as ws:
                    await ws.send(json.dumps({"type": "subscribe", "after": self.last}))
                    await self._read(ws)
            except LOST:
                self.cuts += 1
                await asyncio.sleep(random.uniform(0, 0.2))

    async def _read(self, ws: ClientConnection) -> None:
        while True:
            await self.reading.wait()
            frame = _read.decode(await ws.recv(decode=False))
            assert frame.type in ("events", "heartbeat"), frame.type
            for event in frame.events:
                assert event.seq == self.last + 1, f"got {event.seq}, stand at {self.last}"
                self.last = event.seq
                self.types.append(event.type)
            self.here.set()
            async with self._grown:
                self._grown.notify_all()
            if self.pause:
                await asyncio.sleep(self.pause)
