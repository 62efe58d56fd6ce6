"""The scripted agent's side of the pipes: every line is journaled before it is acted on or written."""

import asyncio
import json
import os
import sys
import threading
import uuid
from collections.abc import AsyncIterator
from typing import Any

from .journal import Journal
from .script import Manners

Json = dict[str, Any]


class Cancelled(Exception):
    """The client wants the turn to stop."""


class RpcError(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Turn:
    """A request that is being worked on."""

    def __init__(self, request: Json) -> None:
        self.request = request
        self.method: str = request["method"]
        self.id = request.get("id")
        self.cancelled = asyncio.Event()
        self.answered = False


class Wire:
    def __init__(self, journal: Journal, manners: Manners) -> None:
        self.journal = journal
        self.session_id = ""
        self._manners = manners
        self._waiting: dict[Any, asyncio.Future[Any]] = {}
        self._last_id = -1

    async def messages(self) -> AsyncIterator[Json]:
        """What the client says, but the answers to our own requests, until its side is closed."""
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
        self.say({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def ask(self, method: str, params: Json) -> "asyncio.Future[Any]":
        self._last_id += 1
        id = self._last_id if self._manners.ids == "numbers" else str(uuid.uuid4())
        future = self._waiting[id] = asyncio.get_running_loop().create_future()
        self.say({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return future

    async def until(self, future: "asyncio.Future[Any]", turn: Turn) -> Any:
        """The answer, unless the turn is cancelled before it comes."""
        if self._manners.on_cancel == "ignore":
            return await future
        stopped = asyncio.ensure_future(turn.cancelled.wait())
        await asyncio.wait([future, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not future.done():
            raise Cancelled
        return future.result()

    def answer(self, turn: Turn, result: Any = None, error: Json | None = None) -> None:
        """Answers a request, once."""
        if turn.answered:
            return
        turn.answered = True
        said: Json = {"jsonrpc": "2.0"}
        if self._manners.answer_ids != "none":
            said["id"] = str(turn.id) if self._manners.answer_ids == "text" else turn.id
        self.say(said | ({"result": result} if error is None else {"error": error}))

    def say(self, message: Json) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, line: bytes) -> None:
        self.journal.write("out", line)
        put(line)

    def _settle(self, message: Json) -> None:
        future = self._waiting.pop(message.get("id"), None)
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(RpcError(message["error"]["code"], message["error"]["message"]))
        else:
            future.set_result(message.get("result"))


def put(data: bytes) -> None:
    """Writes all of it, however slowly it is read."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def _read_lines(loop: asyncio.AbstractEventLoop, lines: "asyncio.Queue[bytes | None]") -> None:
    for line in sys.stdin.buffer:
        loop.call_soon_threadsafe(lines.put_nowait, line)
    loop.call_soon_threadsafe(lines.put_nowait, None)
