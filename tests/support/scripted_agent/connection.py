"""The agent's side of the pipes. Every line is in the journal before it is handled or written."""

import asyncio
import json
import os
import sys
import threading
import uuid
from collections.abc import AsyncIterator
from typing import Any

from .journal import Journal
from .script import AgentBehavior

Json = dict[str, Any]


class Cancelled(Exception):
    """The client cancelled the turn."""


class RpcError(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Turn:
    """A request that is being handled."""

    def __init__(self, request: Json) -> None:
        self.request = request
        self.method: str = request["method"]
        self.id = request.get("id")
        self.cancelled = asyncio.Event()
        self.answered = False


class AgentConnection:
    """Reads requests and answers of the client, and writes those of the agent."""

    def __init__(self, journal: Journal, behavior: AgentBehavior) -> None:
        self.journal = journal
        self.session_id = ""
        self._behavior = behavior
        self._requests: dict[Any, asyncio.Future[Any]] = {}
        self._last_id = -1

    async def messages(self) -> AsyncIterator[Json]:
        """Yield the requests and notifications of the client until it closes its side.

        Answers to the agent's requests are given to their futures.
        """
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        threading.Thread(target=_read_lines, args=(loop, lines), daemon=True).start()
        while (line := await lines.get()) is not None:
            self.journal.write("in", line)
            message = json.loads(line)
            if "method" in message:
                yield message
            else:
                self._settle(message)

    def update(self, update: Json, session: str | None = None) -> None:
        params = {"sessionId": session or self.session_id, "update": update}
        self.send({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def request(self, method: str, params: Json) -> "asyncio.Future[Any]":
        self._last_id += 1
        id = self._last_id if self._behavior.ids == "numbers" else str(uuid.uuid4())
        future = self._requests[id] = asyncio.get_running_loop().create_future()
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return future

    async def wait_for(self, future: "asyncio.Future[Any]", turn: Turn) -> Any:
        """Return the client's answer, or raise Cancelled if the turn is cancelled before."""
        if self._behavior.on_cancel == "ignore":
            return await future
        stopped = asyncio.ensure_future(turn.cancelled.wait())
        await asyncio.wait([future, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not future.done():
            raise Cancelled
        return future.result()

    def answer(self, turn: Turn, result: Any = None, error: Json | None = None) -> None:
        """Answer a request, unless it was answered before."""
        if turn.answered:
            return
        turn.answered = True
        message: Json = {"jsonrpc": "2.0"}
        if self._behavior.answer_ids != "none":
            message["id"] = str(turn.id) if self._behavior.answer_ids == "text" else turn.id
        self.send(message | ({"result": result} if error is None else {"error": error}))

    def send(self, message: Json) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, line: bytes) -> None:
        self.journal.write("out", line)
        write_fully(line)

    def _settle(self, message: Json) -> None:
        future = self._requests.pop(message.get("id"), None)
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(RpcError(message["error"]["code"], message["error"]["message"]))
        else:
            future.set_result(message.get("result"))


def write_fully(data: bytes) -> None:
    """Write all data to the standard output, in as many writes as needed."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def _read_lines(loop: asyncio.AbstractEventLoop, lines: "asyncio.Queue[bytes | None]") -> None:
    for line in sys.stdin.buffer:
        loop.call_soon_threadsafe(lines.put_nowait, line)
    loop.call_soon_threadsafe(lines.put_nowait, None)
