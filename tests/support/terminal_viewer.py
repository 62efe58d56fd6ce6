"""A viewer of a terminal that checks that it receives every byte once and in order, over reconnections.

A writer for the same terminal repeats its input until the server acknowledges it.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from .server import Server


class TemporarilyUnavailable(OSError):
    """The server lacks the resources to serve a socket now."""


CONNECTION_ERRORS = (ConnectionClosed, InvalidHandshake, OSError, EOFError, TimeoutError)


class TerminalViewer:
    """Follows the output from offset 0 and reconnects after a lost connection. `data` is the whole output.

    After each message it waits for a random time of at most `max_read_delay` seconds.
    """

    def __init__(
        self, server: Server, session_id: str, worker_id: str, *, max_read_delay: float = 0.0
    ) -> None:
        self.data = bytearray()
        self.exit: dict[str, Any] | None = None
        self._changed = asyncio.Condition()
        self.reading = asyncio.Event()  # cleared: the viewer stops reading its socket
        self.reading.set()
        self._server = server
        self._path = f"/ws/session/{session_id}/worker/{worker_id}"
        self._max_read_delay = max_read_delay

    @asynccontextmanager
    async def watching(self) -> AsyncIterator["TerminalViewer"]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._run())
            yield self
            task.cancel()

    async def until(self, size: int) -> None:
        """Wait until this many bytes were received."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.data) >= size)

    async def until_seen(self, text: bytes) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: text in self.data)

    async def until_exit(self) -> dict[str, Any]:
        async with self._changed:
            await self._changed.wait_for(lambda: self.exit is not None)
        assert self.exit is not None
        return self.exit

    async def _run(self) -> None:
        while True:
            try:
                async with self._server.socket(f"{self._path}?format=binary&after={len(self.data)}") as ws:
                    await self._read(ws)
            except CONNECTION_ERRORS:
                await asyncio.sleep(0.02)

    async def _read(self, ws: ClientConnection) -> None:
        while True:
            await self.reading.wait()
            message = await ws.recv()
            if isinstance(message, bytes):
                await self._add(int.from_bytes(message[:8], "big"), message[8:])
            else:
                await self._handle(json.loads(message))
            if self._max_read_delay:
                await asyncio.sleep(random.uniform(0, self._max_read_delay))

    async def _add(self, offset: int, data: bytes) -> None:
        assert offset == len(self.data), f"got offset {offset} after {len(self.data)} bytes"
        self.data += data
        async with self._changed:
            self._changed.notify_all()

    async def _handle(self, message: dict[str, Any]) -> None:
        assert message["type"] != "history", "a viewer that requests bytes receives no history"
        check_error(message)
        if message["type"] == "exit":
            assert message["offset"] == len(self.data), "the exit was sent before the last byte"
            self.exit = message
            async with self._changed:
                self._changed.notify_all()


class TerminalWriter:
    """Types numbered batches and repeats each until the server acknowledges it."""

    def __init__(self, server: Server, session_id: str, worker_id: str, client: str) -> None:
        self._server = server
        self._path = f"/ws/session/{session_id}/worker/{worker_id}?client={client}&after=0"
        self._n = 0

    async def type(self, *batches: str) -> None:
        """Type the batches and wait until all are acknowledged; the server may restart meanwhile."""
        waiting = {self._n + i: batch for i, batch in enumerate(batches, 1)}
        self._n += len(batches)
        while waiting:
            try:
                async with self._server.socket(self._path) as ws:
                    await self._send_all(ws, waiting)
            except CONNECTION_ERRORS:
                await asyncio.sleep(0.02)

    async def _send_all(self, ws: ClientConnection, waiting: dict[int, str]) -> None:
        for n, batch in sorted(waiting.items()):
            await ws.send(json.dumps({"type": "input", "n": n, "data": batch}))
        while waiting:
            message = json.loads(await asyncio.wait_for(ws.recv(), 30))
            if message["type"] == "ack":
                for n in [n for n in waiting if n <= message["n"]]:
                    del waiting[n]
            check_error(message)


def check_error(message: dict[str, Any]) -> None:
    """Raise TemporarilyUnavailable for a temporary error, and AssertionError for any other error."""
    if message["type"] == "error" and message["error"] == "unavailable":
        raise TemporarilyUnavailable(message["message"])
    assert message["type"] != "error", message
