"""A viewer of a session that checks the order of events over reconnections. It keeps no events."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from websockets.asyncio.client import ClientConnection

from .server import Server
from .terminal_viewer import CONNECTION_ERRORS


class _Event(msgspec.Struct):
    seq: int
    type: str


class _Frame(msgspec.Struct):
    type: str
    events: list[_Event] = []


_decoder = msgspec.json.Decoder(_Frame)


class SessionViewer:
    """Follows a session from its first event and reconnects when the connection is lost.

    It waits `read_delay` seconds after each frame. While `reading` is cleared, it reads nothing.
    """

    def __init__(self, server: Server, session_id: str, *, read_delay: float = 0.0) -> None:
        self.session_id = session_id
        self.last = 0
        self.types: list[str] = []
        self.cuts = 0  # lost connections
        self.received = asyncio.Event()  # set by the first frame
        self.reading = asyncio.Event()
        self.reading.set()
        self.read_delay = read_delay
        self._events_added = asyncio.Condition()
        self._server = server
        self._path = f"/ws/session/{session_id}"

    @asynccontextmanager
    async def watching(self) -> AsyncIterator["SessionViewer"]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._run())
            yield self
            task.cancel()

    async def until(self, seq: int) -> None:
        async with self._events_added:
            await self._events_added.wait_for(lambda: self.last >= seq)

    async def until_seen(self, type: str) -> None:
        async with self._events_added:
            await self._events_added.wait_for(lambda: type in self.types)

    async def _run(self) -> None:
        while True:
            try:
                # Keep one frame in memory: further frames wait in the kernel, then in the server.
                async with self._server.socket(self._path, max_queue=1, ping_interval=None) as ws:
                    await ws.send(json.dumps({"type": "subscribe", "after": self.last}))
                    await self._read(ws)
            except CONNECTION_ERRORS:
                self.cuts += 1
                await asyncio.sleep(random.uniform(0, 0.2))

    async def _read(self, ws: ClientConnection) -> None:
        while True:
            await self.reading.wait()
            frame = _decoder.decode(await ws.recv(decode=False))
            assert frame.type in ("events", "heartbeat"), frame.type
            for event in frame.events:
                assert event.seq == self.last + 1, f"got {event.seq} after {self.last}"
                self.last = event.seq
                self.types.append(event.type)
            self.received.set()
            async with self._events_added:
                self._events_added.notify_all()
            if self.read_delay:
                await asyncio.sleep(self.read_delay)
