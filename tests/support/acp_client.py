"""A small ACP client for tests of agents. It starts a real agent process and uses its pipes."""

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
ALL_CAPABILITIES = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}},
}

T = TypeVar("T")
Handler = Callable[[dict[str, Any]], Any]


class AcpError(Exception):
    """The agent answered with an error, or its process ended before the answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class AcpClient:
    """Client side of one agent process.

    `lines` has every line that the agent wrote. `handlers` answer the agent's requests, by method; an
    AcpError that a handler raises becomes an error response.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[Line] = []
        self.handlers: dict[str, Handler] = {}
        self.session_id = ""
        self.stderr = b""
        self._changed = asyncio.Condition()
        self._output_ended = False
        self._last_id = 0

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
        reader = asyncio.gather(self._read_stdout(), self._read_stderr())
        try:
            yield self
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            await reader

    async def open(
        self, cwd: str, capabilities: dict[str, Any] | None = None, method: str = "session/new"
    ) -> Any:
        """Initialize the agent and open a session; return the result of `method`.

        A method other than session/new continues the session `session_id`.
        """
        if capabilities is None:
            capabilities = ALL_CAPABILITIES
        await self.request("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
        params: dict[str, Any] = {"cwd": cwd, "mcpServers": []}
        if method != "session/new":
            params["sessionId"] = self.session_id
        result = await self.request(method, params)
        if method == "session/new":
            self.session_id = result["sessionId"]
        return result

    async def prompt(self, text: str) -> Any:
        return await self.response_to(self.send_prompt(text))

    def send_prompt(self, text: str) -> int:
        """Send a prompt and return the id of its request."""
        blocks = [{"type": "text", "text": text}]
        return self.send("session/prompt", {"sessionId": self.session_id, "prompt": blocks})

    def cancel(self) -> None:
        self.write(jsonrpc.notification("session/cancel", {"sessionId": self.session_id}))

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        return await self.response_to(self.send(method, params))

    def send(self, method: str, params: dict[str, Any]) -> int:
        """Send a request and return its id."""
        self._last_id += 1
        self.write(jsonrpc.request(self._last_id, method, params))
        return self._last_id

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)

    async def response_to(self, request_id: int) -> Any:
        """Wait for the result of a request, or raise AcpError."""

        def find() -> Response | ErrorResponse | None:
            for line in self.lines:
                if isinstance(line, Response | ErrorResponse) and line.id == request_id:
                    return line
            return None

        line = await self.until(find)
        if isinstance(line, ErrorResponse):
            raise AcpError(line.code, line.message)
        assert isinstance(line, Response)
        return line.result

    async def until(self, find: Callable[[], T | None]) -> T:
        """Wait until `find` returns a value, and return it. Raise AcpError if the output ends before."""
        async with asyncio.timeout(DEADLINE), self._changed:
            while not (value := find()):
                if self._output_ended:
                    raise AcpError(0, f"the agent ended; its stderr: {self.stderr.decode()}")
                await self._changed.wait()
            return value

    def updates(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Return the session updates, of all kinds or of one."""
        updates = [
            line.params["update"]
            for line in self.lines
            if isinstance(line, Notification) and line.method == "session/update"
        ]
        return [update for update in updates if kind in (None, update["sessionUpdate"])]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"].get("text", "") for update in self.updates(kind))

    def invalid_lines(self) -> list[str]:
        """Return the lines of the agent that are not JSON-RPC."""
        return [line.text for line in self.lines if isinstance(line, InvalidLine)]

    async def wait_for_exit(self) -> int:
        """Wait until the process ends; return its exit code."""
        async with asyncio.timeout(DEADLINE):
            return await self.process.wait()

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        peer = JsonRpcPeer()
        while data := await self.process.stdout.read(1 << 16):
            await self._add(peer.feed(data))
        self._output_ended = True
        await self._add(peer.finish())

    async def _read_stderr(self) -> None:
        """Keep the last 4096 bytes of the standard error."""
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(1 << 16):
            self.stderr = (self.stderr + data)[-4096:]

    async def _add(self, lines: list[Line]) -> None:
        for line in lines:
            self.lines.append(line)
            if isinstance(line, Request) and (handler := self.handlers.get(line.method)):
                self.write(_response_of(handler, line))
        async with self._changed:
            self._changed.notify_all()


def _response_of(handler: Handler, request: Request) -> bytes:
    try:
        return jsonrpc.response(request.id, handler(request.params))
    except AcpError as error:
        return jsonrpc.error_response(request.id, error.code, str(error))
