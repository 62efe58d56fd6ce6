"""The agent's side of the pipes: lines in, lines out, and who waits for which answer."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

from ...wire import jsonrpc
from ...wire.jsonrpc import ErrorResponse, JsonRpcPeer, Notification, Request, Response


class ClientError(Exception):
    """The client answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class AcpConnection:
    """Messages of a client, in order; answers to our own requests go to whoever waits for them."""

    def __init__(self) -> None:
        self._peer = JsonRpcPeer()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_id = -1

    async def messages(self) -> AsyncIterator[Request | Notification]:
        """What the client wants, until its side is closed."""
        arrived: asyncio.Queue[bytes] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        # A thread, not the loop: to read with the loop would make a shared pipe non-blocking for writers.
        threading.Thread(target=_read_input, args=(loop, arrived), daemon=True).start()
        while data := await arrived.get():
            for line in self._peer.feed(data):
                match line:
                    case Request() | Notification():
                        yield line
                    case Response() | ErrorResponse():
                        self._settle(line)

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        """Asks the client and waits for its answer."""
        self._last_id += 1
        id = self._last_id
        self._waiting[id] = asyncio.get_running_loop().create_future()
        try:
            self._write(jsonrpc.request(id, method, params))
            return await self._waiting[id]
        finally:
            del self._waiting[id]

    def send(self, method: str, params: dict[str, Any]) -> None:
        """Asks the client and does not wait; whatever it answers is of no interest."""
        self._last_id += 1
        self._write(jsonrpc.request(self._last_id, method, params))

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self._write(jsonrpc.notification(method, params))

    def answer(self, request: Request, result: Any) -> None:
        self._write(jsonrpc.response(request.id, result))

    def refuse(self, request: Request, code: int, message: str) -> None:
        self._write(jsonrpc.error_response(request.id, code, message))

    def _settle(self, line: Response | ErrorResponse) -> None:
        id = jsonrpc.match_answer(line.id, self._waiting)
        if id is None or self._waiting[id].done():
            return
        if isinstance(line, ErrorResponse):
            self._waiting[id].set_exception(ClientError(line.code, line.message))
        else:
            self._waiting[id].set_result(line.result)

    def _write(self, line: bytes) -> None:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def _read_input(loop: asyncio.AbstractEventLoop, arrived: "asyncio.Queue[bytes]") -> None:
    data = b"more"
    while data:
        try:
            data = os.read(sys.stdin.fileno(), 1 << 16)
        except OSError:
            data = b""
        try:
            loop.call_soon_threadsafe(arrived.put_nowait, data)
        except RuntimeError:  # the loop is closed: the agent is at its end
            return
