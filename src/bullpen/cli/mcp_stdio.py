"""An MCP server on stdin and stdout: every line in is heard, calls run side by side, answers go out whole."""

import asyncio
import os
import sys
from collections.abc import Awaitable
from typing import Protocol

from .. import __version__
from ..domain.errors import BullpenError
from ..wire import mcp
from ..wire.jsonrpc import INVALID_REQUEST, JsonRpcPeer, Line, error_response

_CHUNK = 64 << 10
NAME = "bullpen"


class ToolProvider(Protocol):
    """What can be called."""

    tools: list[mcp.McpTool]

    def call(self, name: str, arguments: dict[str, object]) -> Awaitable[str]: ...


async def serve(offer: ToolProvider) -> None:
    """Until the client closes its side."""
    server = _McpServer(offer)
    peer = JsonRpcPeer()
    stdin = await _stdin()
    async with asyncio.TaskGroup() as calls:
        while data := await stdin.read(_CHUNK):
            for line in peer.feed(data):
                server.hear(line, calls)
        server.leave()


class _McpServer:
    def __init__(self, offer: ToolProvider) -> None:
        self._offer = offer
        self._calls: dict[object, asyncio.Task[None]] = {}

    def hear(self, line: Line, calls: asyncio.TaskGroup) -> None:
        match mcp.read_message(line, NAME, __version__, self._offer.tools):
            case mcp.McpAnswer(line=answer):
                _say(answer)
            case mcp.McpCall(id=id) if _key(id) in self._calls:
                _say(error_response(id, INVALID_REQUEST, "a call with this id has not been answered yet"))
            case mcp.McpCall() as call:
                task = self._calls[_key(call.id)] = calls.create_task(self._run(call))
                task.add_done_callback(lambda _: self._calls.pop(_key(call.id), None))
            case mcp.McpCancellation(id=id) if _key(id) in self._calls:
                self._calls[_key(id)].cancel()

    def leave(self) -> None:
        """Nobody reads answers any more."""
        for task in self._calls.values():
            task.cancel()

    async def _run(self, call: mcp.McpCall) -> None:
        try:
            answer = mcp.tool_result(call.id, await self._offer.call(call.name, call.arguments))
        except BullpenError as error:
            answer = mcp.tool_result(call.id, str(error), failed=True)
        _say(answer)


def _key(id: object) -> str:
    """Ids are of any type; 1 and "1" are two."""
    return repr(id)


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


async def _stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    pipe = os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader
