"""Serve MCP on stdin and stdout; tool calls run concurrently."""

import asyncio
import os
import sys
from collections.abc import Awaitable
from typing import Protocol

from .. import __version__
from ..domain.errors import BullpenError
from ..wire import mcp
from ..wire.jsonrpc import INVALID_REQUEST, JsonRpcPeer, Line, error_response

_READ_BYTES = 64 << 10
NAME = "bullpen"


class ToolProvider(Protocol):
    """An object with the tools that the client may call."""

    tools: list[mcp.McpTool]

    def call(self, name: str, arguments: dict[str, object]) -> Awaitable[str]:
        """Call a tool and return its result as text."""
        ...


async def serve(provider: ToolProvider) -> None:
    """Answer the messages on stdin until the client closes it."""
    server = _McpServer(provider)
    peer = JsonRpcPeer()
    stdin = await _open_stdin()
    async with asyncio.TaskGroup() as calls:
        while data := await stdin.read(_READ_BYTES):
            for line in peer.feed(data):
                server.handle(line, calls)
        server.cancel_calls()


class _McpServer:
    """The calls that run for one client; answers go to stdout."""

    def __init__(self, provider: ToolProvider) -> None:
        self._provider = provider
        self._calls: dict[object, asyncio.Task[None]] = {}

    def handle(self, line: Line, calls: asyncio.TaskGroup) -> None:
        """Answer a message, or start or cancel a call in `calls`."""
        match mcp.read_message(line, NAME, __version__, self._provider.tools):
            case mcp.McpAnswer(line=answer):
                _write_line(answer)
            case mcp.McpCall(id=id) if _key(id) in self._calls:
                _write_line(
                    error_response(id, INVALID_REQUEST, "a call with this id has not been answered yet")
                )
            case mcp.McpCall() as call:
                task = self._calls[_key(call.id)] = calls.create_task(self._run(call))
                task.add_done_callback(lambda _: self._calls.pop(_key(call.id), None))
            case mcp.McpCancellation(id=id) if _key(id) in self._calls:
                self._calls[_key(id)].cancel()

    def cancel_calls(self) -> None:
        """Cancel all calls, because the client no longer reads answers."""
        for task in self._calls.values():
            task.cancel()

    async def _run(self, call: mcp.McpCall) -> None:
        """Call a tool and write its result, or its error as a failed result."""
        try:
            answer = mcp.tool_result(call.id, await self._provider.call(call.name, call.arguments))
        except BullpenError as error:
            answer = mcp.tool_result(call.id, str(error), failed=True)
        _write_line(answer)


def _key(id: object) -> str:
    """Return a dictionary key for an id of any type; 1 and "1" are different ids."""
    return repr(id)


def _write_line(line: bytes) -> None:
    """Write a message to standard output and flush it."""
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


async def _open_stdin() -> asyncio.StreamReader:
    """Return a stream reader for standard input."""
    reader = asyncio.StreamReader()
    pipe = os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader
