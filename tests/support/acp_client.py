"""A small ACP client for tests of agents: it talks to a real process over its pipes."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, TypeVar

from bullpen.wire import jsonrpc
from bullpen.wire.jsonrpc import (
    ErrorResponse,
    InvalidLine,
    JsonRpcPeer,
    Line,
    Notification,
    Request,
    Response,
)

DEADLINE = 60.0
OFFERS_ALL = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}},
}

T = TypeVar("T")
Handler = Callable[[dict[str, Any]], Any]


class Refused(Exception):
    """The agent answered with an error, or ended without an answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class AcpClient:
    """`lines` is everything the agent said; `handlers` answer what it asks (an exception is an error)."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[Line] = []
        self.handlers: dict[str, Handler] = {}
        self.session_id = ""
        self.stderr = b""
        self._changed = asyncio.Condition()
        self._over = False
        self._n = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def start(
        cls, command: Sequence[str], cwd: str, env: Mapping[str, str] | None = None
    ) -> AsyncIterator["AcpClient"]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, cwd=cwd, env={**os.environ, **(env or {})}, stdin=pipe, stdout=pipe, stderr=pipe
        )
        self = cls(process)
        reader = asyncio.gather(self._read(), self._drain())
        try:
            yield self
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            await reader

    async def open(self, cwd: str, offers: dict[str, Any] | None = None, how: str = "session/new") -> Any:
        """The handshake, up to a session; `session_id` names the one to take up again."""
        capabilities = OFFERS_ALL if offers is None else offers
        await self.ask("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
        params: dict[str, Any] = {"cwd": cwd, "mcpServers": []}
        if how != "session/new":
            params["sessionId"] = self.session_id
        result = await self.ask(how, params)
        if how == "session/new":
            self.session_id = result["sessionId"]
        return result

    async def prompt(self, text: str) -> Any:
        return await self.answer(self.send_prompt(text))

    def send_prompt(self, text: str) -> int:
        blocks = [{"type": "text", "text": text}]
        return self.send("session/prompt", {"sessionId": self.session_id, "prompt": blocks})

    def cancel(self) -> None:
        self.write(jsonrpc.notification("session/cancel", {"sessionId": self.session_id}))

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        return await self.answer(self.send(method, params))

    def send(self, method: str, params: dict[str, Any]) -> int:
        self._n += 1
        self.write(jsonrpc.request(self._n, method, params))
        return self._n

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)

    async def answer(self, n: int) -> Any:
        """The answer to a request; Refused when it is an error."""

        def found() -> Response | ErrorResponse | None:
            for line in self.lines:
                if isinstance(line, Response | ErrorResponse) and line.id == n:
                    return line
            return None

        line = await self.until(found)
        if isinstance(line, ErrorResponse):
            raise Refused(line.code, line.message)
        assert isinstance(line, Response)
        return line.result

    async def until(self, found: Callable[[], T | None]) -> T:
        """Waits until there is what one looks for; fails when the agent has ended without it."""
        async with asyncio.timeout(DEADLINE), self._changed:
            while not (value := found()):
                if self._over:
                    raise Refused(0, f"the agent ended; it said {self.stderr.decode()}")
                await self._changed.wait()
            return value

    def updates(self, kind: str | None = None) -> list[dict[str, Any]]:
        told = [
            line.params["update"]
            for line in self.lines
            if isinstance(line, Notification) and line.method == "session/update"
        ]
        return [update for update in told if kind in (None, update["sessionUpdate"])]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"].get("text", "") for update in self.updates(kind))

    def noise(self) -> list[str]:
        return [line.text for line in self.lines if isinstance(line, InvalidLine)]

    async def ended(self) -> int:
        """Waits for the end of the process; its exit code."""
        async with asyncio.timeout(DEADLINE):
            return await self.process.wait()

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        peer = JsonRpcPeer()
        while data := await self.process.stdout.read(1 << 16):
            await self._take(peer.feed(data))
        self._over = True
        await self._take(peer.finish())

    async def _drain(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(1 << 16):
            self.stderr = (self.stderr + data)[-4096:]

    async def _take(self, lines: list[Line]) -> None:
        for line in lines:
            self.lines.append(line)
            if isinstance(line, Request) and (handler := self.handlers.get(line.method)):
                self.write(_handled(line, handler))
        async with self._changed:
            self._changed.notify_all()


def _handled(request: Request, handler: Handler) -> bytes:
    try:
        return jsonrpc.response(request.id, handler(request.params))
    except Refused as error:
        return jsonrpc.error_response(request.id, error.code, str(error))
