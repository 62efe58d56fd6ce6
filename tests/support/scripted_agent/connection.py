"""The agent's side of the pipes. Every line is in the journal before it is handled or written."""

import json
import os
from collections.abc import AsyncIterator

from .journal import Journal
from .json_types import Any, Json
from .script import AgentBehavior
from .tasks import Wait


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
        self.cancelled = False
        self.answered = False


class AgentConnection:
    """Reads requests and answers of the client, and writes those of the agent."""

    def __init__(self, journal: Journal, behavior: AgentBehavior) -> None:
        self.journal = journal
        self.session_id = ""
        self._behavior = behavior
        self._answers: dict[int | str, Json] = {}  # of the client, by the ids of the agent's requests
        self._last_id = -1

    async def messages(self) -> AsyncIterator[Json]:
        """Yield the requests and notifications of the client until it closes its side."""
        async for line in _read_lines():
            self.journal.write("in", line)
            message = json.loads(line)
            if "method" in message:
                yield message
            else:
                self._answers[message.get("id")] = message

    def update(self, update: Json, session: str | None = None) -> None:
        params = {"sessionId": session or self.session_id, "update": update}
        self.send({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def request(self, method: str, params: Json) -> int | str:
        """Make a request; return its id."""
        self._last_id += 1
        id = self._last_id if self._behavior.ids == "numbers" else _new_uuid()
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    async def answer_to(self, id: int | str, turn: Turn) -> Any:
        """Return the client's answer, or raise Cancelled if the turn is cancelled before."""
        obeys = self._behavior.on_cancel != "ignore"
        await Wait(lambda: id in self._answers or (obeys and turn.cancelled))
        if id not in self._answers:
            raise Cancelled
        answer = self._answers.pop(id)
        if "error" in answer:
            raise RpcError(answer["error"]["code"], answer["error"]["message"])
        return answer.get("result")

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


def write_fully(data: bytes) -> None:
    """Write all data to the standard output, in as many writes as needed."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


async def _read_lines() -> AsyncIterator[bytes]:
    """Yield the complete lines of the standard input."""
    received = bytearray()
    while data := await _read():
        received += data
        if b"\n" in data:
            *lines, received = received.split(b"\n")
            for line in lines:
                yield bytes(line + b"\n")


async def _read() -> bytes:
    await Wait(file=0)
    return os.read(0, 1 << 16)


def _new_uuid() -> str:
    import uuid

    return str(uuid.uuid4())
