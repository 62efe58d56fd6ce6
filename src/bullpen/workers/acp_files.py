"""Perform an agent's ACP requests fs/read_text_file and fs/write_text_file inside its workspace."""

import asyncio
from typing import Any

from ..domain.agents import AgentDefinition
from ..domain.conversation import FileRead, FileWrite
from ..domain.errors import BullpenError, Forbidden, Invalid, NotFound
from ..domain.events import Error, Fact, SandboxRefusal
from ..domain.grants import MAX_TARGET_LENGTH, GrantKind
from ..domain.snapshot import Worker
from ..sandbox.agent_files import AgentFiles
from ..wire.acp import AgentTask
from ..wire.acp_calls import RESOURCE_NOT_FOUND, ErrorReply, OutgoingReply
from ..wire.json import encode
from ..wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, MAX_LINE_BYTES


async def perform(
    task: AgentTask, worker: Worker, definition: AgentDefinition, files: AgentFiles
) -> tuple[list[Fact], OutgoingReply]:
    """Perform a file request of an agent; return the facts to record and the reply, which may be an error.

    It is idempotent.
    """
    try:
        match task.method, task.params:
            case "fs/read_text_file", {"path": str(path)}:
                return await _read(task, files, path, empty=definition.quirks.missing_file == "empty")
            case "fs/write_text_file", {"path": str(path), "content": str(content)}:
                return await _write(task, worker, files, path, content)
            case _:
                raise Invalid(f"{task.method} needs a path and its other parameters")
    except BullpenError as error:
        facts = await asyncio.to_thread(_facts_of, error, task, worker, files)
        return facts, OutgoingReply(rpc_id=task.rpc_id, method=task.method, fault=_error_reply(error))


async def _read(
    task: AgentTask, files: AgentFiles, path: str, empty: bool
) -> tuple[list[Fact], OutgoingReply]:
    """Perform fs/read_text_file. With `empty`, a missing file reads as an empty one.

    Raise Invalid if the content is too large for one answer.
    """
    try:
        data = await asyncio.to_thread(files.read_bytes, path)
    except NotFound:
        if not empty:
            raise
        data = b""
    content = _select_lines(data.decode("utf-8", "replace"), task.params)
    if len(encode(content)) > MAX_LINE_BYTES:
        raise Invalid(f"{path} is too much for one answer; ask for some of its lines (line, limit)")
    reply = OutgoingReply(rpc_id=task.rpc_id, method=task.method, result={"content": content})
    return [FileRead(path=path, size=len(data))], reply


async def _write(
    task: AgentTask, worker: Worker, files: AgentFiles, path: str, content: str
) -> tuple[list[Fact], OutgoingReply]:
    """Perform fs/write_text_file."""
    data = content.encode("utf-8", "replace")
    await asyncio.to_thread(files.write_bytes, path, data, f"{worker.id} {task.rpc_id}")
    reply = OutgoingReply(rpc_id=task.rpc_id, method=task.method, result={})
    return [FileWrite(path=path, size=len(data))], reply


def _facts_of(error: BullpenError, task: AgentTask, worker: Worker, files: AgentFiles) -> list[Fact]:
    """Return an event for the user if the agent was refused a file; nothing for other errors."""
    if not isinstance(error, Forbidden):
        return []
    path = files.grantable(str(task.params.get("path")))
    if path is None or len(path) > MAX_TARGET_LENGTH or not path.isprintable():  # it could look like another
        return [Error(message=f"the agent was refused a file: {error}")]
    kind: GrantKind = "read" if task.method == "fs/read_text_file" else "write"
    return [SandboxRefusal(kind=kind, target=path, program=worker.name)]


def _select_lines(text: str, params: dict[str, Any]) -> str:
    """Return the lines from `line` (1 is the first) on, at most `limit` of them."""
    first, limit = params.get("line"), params.get("limit")
    if not isinstance(first, int) and not isinstance(limit, int):
        return text
    lines = text.splitlines(keepends=True)
    start = max(0, first - 1) if isinstance(first, int) else 0
    return "".join(lines[start : start + max(0, limit) if isinstance(limit, int) else None])


def _error_reply(error: BullpenError) -> ErrorReply:
    """Return the JSON-RPC error for a refused request."""
    match error:
        case NotFound():
            return ErrorReply(RESOURCE_NOT_FOUND, str(error))
        case Invalid() | Forbidden():
            return ErrorReply(INVALID_PARAMS, str(error))
        case _:
            return ErrorReply(INTERNAL_ERROR, str(error))
