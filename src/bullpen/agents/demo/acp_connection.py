"""Exchange JSON-RPC messages with the ACP client over stdin and stdout."""

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
    """The connection to one client. Answers of the client go to the task that sent the request."""

    def __init__(self) -> None:
        self._peer = JsonRpcPeer()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_id = -1

    async def messages(self) -> AsyncIterator[Request | Notification]:
        """Yield the requests and notifications of the client in order, until it closes its side."""
        arrived: asyncio.Queue[bytes] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        # Read in a thread: asyncio would make the pipe non-blocking, also for other processes that share it.
        threading.Thread(target=_read_input, args=(loop, arrived), daemon=True).start()
        while data := await arrived.get():
            for line in self._peer.feed(data):
                match line:
                    case Request() | Notification():
                        yield line
                    case Response() | ErrorResponse():
                        self._set_answer(line)

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request and wait for its result; raise ClientError if the client answers with an error."""
        self._last_id += 1
        id = self._last_id
        self._waiting[id] = asyncio.get_running_loop().create_future()
        try:
            self._write(jsonrpc.request(id, method, params))
            return await self._waiting[id]
        finally:
            del self._waiting[id]

    def send(self, method: str, params: dict[str, Any]) -> None:
        """Send a request and ignore its answer."""
        self._last_id += 1
        self._write(jsonrpc.request(self._last_id, method, params))

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification."""
        self._write(jsonrpc.notification(method, params))

    def answer(self, request: Request, result: Any) -> None:
        """Send the result of a request."""
        self._write(jsonrpc.response(request.id, result))

    def refuse(self, request: Request, code: int, message: str) -> None:
        """Answer a request with an error."""
        self._write(jsonrpc.error_response(request.id, code, message))

    def _set_answer(self, line: Response | ErrorResponse) -> None:
        """Give an answer to the task that waits for it."""
        id = jsonrpc.match_answer(line.id, self._waiting)
        if id is None or self._waiting[id].done():
            return
        if isinstance(line, ErrorResponse):
            self._waiting[id].set_exception(ClientError(line.code, line.message))
        else:
            self._waiting[id].set_result(line.result)

    def _write(self, line: bytes) -> None:
        """Write a line to stdout and flush it."""
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def _read_input(loop: asyncio.AbstractEventLoop, arrived: "asyncio.Queue[bytes]") -> None:
    """Put the data of stdin into a queue, and empty bytes at its end."""
    data = b"more"
    while data:
        try:
            data = os.read(sys.stdin.fileno(), 1 << 16)
        except OSError:
            data = b""
        try:
            loop.call_soon_threadsafe(arrived.put_nowait, data)
        except RuntimeError:  # the event loop is closed: the agent is ending
            return
