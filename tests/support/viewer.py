"""A viewer of a terminal that checks what it gets: every byte once, in order, over any number of cuts."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from .server import Server


class NotNow(OSError):
    """The server says that it cannot serve a socket for want of resources."""


LOST = (ConnectionClosed, InvalidHandshake, OSError, EOFError, TimeoutError)


class Viewer:
    """Follows from offset 0 on; `data` is the stream as it was put together again."""

    def __init__(self, server: Server, session_id: str, worker_id: str, *, slowly: float = 0.0) -> None:
        self.data = bytearray()
        self.exit: dict[str, Any] | None = None
        self.grown = asyncio.Condition()
        self.reading = asyncio.Event()  # cleared: the viewer stops reading its socket
        self.reading.set()
        self._server = server
        self._path = f"/ws/session/{session_id}/worker/{worker_id}"
        self._slowly = slowly

    @asynccontextmanager
    async def watching(self) -> AsyncIterator["Viewer"]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._run())
            yield self
            task.cancel()

    async def until(self, size: int) -> None:
        """Waits until this much of the stream is here."""
        async with self.grown:
            await self.grown.wait_for(lambda: len(self.data) >= size)

    async def until_seen(self, text: bytes) -> None:
        async with self.grown:
            await self.grown.wait_for(lambda: text in self.data)

    async def until_exit(self) -> dict[str, Any]:
        async with self.grown:
            await self.grown.wait_for(lambda: self.exit is not None)
        assert self.exit is not None
        return self.exit

    async def _run(self) -> None:
        while True:
            try:
                async with self._server.socket(f"{self._path}?after={len(self.data)}") as ws:
                    await self._read(ws)
            except LOST:
                await asyncio.sleep(0.02)

    async def _read(self, ws: ClientConnection) -> None:
        while True:
            await self.reading.wait()
            message = await ws.recv()
            if isinstance(message, bytes):
                await self._take(int.from_bytes(message[:8], "big"), message[8:])
            else:
                await self._note(json.loads(message))
            if self._slowly:
                await asyncio.sleep(random.uniform(0, self._slowly))

    async def _take(self, offset: int, data: bytes) -> None:
        assert offset == len(self.data), f"got offset {offset}, stand at {len(self.data)}"
        self.data += data
        async with self.grown:
            self.grown.notify_all()

    async def _note(self, message: dict[str, Any]) -> None:
        assert message["type"] != "history", "a viewer that asks for bytes must get bytes"
        check_error(message)
        if message["type"] == "exit":
            assert message["offset"] == len(self.data), "the exit comes after the last byte"
            self.exit = message
            async with self.grown:
                self.grown.notify_all()


class Typist:
    """Types numbered batches and repeats each until the server says it was taken."""

    def __init__(self, server: Server, session_id: str, worker_id: str, client: str) -> None:
        self._server = server
        self._path = f"/ws/session/{session_id}/worker/{worker_id}?client={client}&after=0&format=json"
        self._n = 0

    async def type(self, *batches: str) -> None:
        """Returns when all were acknowledged; the server may die and come back meanwhile."""
        waiting = {self._n + i: batch for i, batch in enumerate(batches, 1)}
        self._n += len(batches)
        while waiting:
            try:
                async with self._server.socket(self._path) as ws:
                    await self._try(ws, waiting)
            except LOST:
                await asyncio.sleep(0.02)

    async def _try(self, ws: ClientConnection, waiting: dict[int, str]) -> None:
        for n, batch in sorted(waiting.items()):
            await ws.send(json.dumps({"type": "input", "n": n, "data": batch}))
        while waiting:
            message = json.loads(await asyncio.wait_for(ws.recv(), 30))
            if message["type"] == "ack":
                for n in [n for n in waiting if n <= message["n"]]:
                    del waiting[n]
            check_error(message)


def check_error(message: dict[str, Any]) -> None:
    """Raise NotNow for an error that passes; no other error is expected."""
    if message["type"] == "error" and message["error"] == "unavailable":
        raise NotNow(message["message"])
    assert message["type"] != "error", message
