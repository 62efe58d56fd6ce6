"""Read and write files and run commands for the demo agent, through the client if it offers that."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

from .acp_connection import AcpConnection, ClientError
from .conversation_store import DemoConversation

MAX_OUTPUT_BYTES = 64 << 10


class ToolRunner:
    """The tools of one session. It uses ACP methods of the client if `capabilities` has them."""

    def __init__(
        self, connection: AcpConnection, session: DemoConversation, capabilities: dict[str, Any]
    ) -> None:
        self._connection = connection
        self._session = session
        files = capabilities.get("fs")
        self._files = files if isinstance(files, dict) else {}
        self._has_terminals = bool(capabilities.get("terminal"))

    def resolve(self, name: str) -> str | None:
        """Return the path of a file in the workspace, or None if it is outside."""
        root = os.path.realpath(self._session.cwd)
        path = os.path.realpath(os.path.join(root, name))
        return path if os.path.commonpath([root, path]) == root else None

    async def read(self, path: str) -> str:
        """Return the text of a file, empty if it does not exist."""
        if not self._files.get("readTextFile"):
            return _read_text(path)
        try:
            answer = await self._call("fs/read_text_file", path=path)
        except ClientError:
            return ""
        return str(answer.get("content", ""))

    async def write(self, path: str, text: str) -> None:
        """Write a file through the client if it offers that, else directly."""
        if self._files.get("writeTextFile"):
            await self._call("fs/write_text_file", path=path, content=text)
        else:
            _write_text(path, text)

    async def run(self, command: str, show: Callable[[str], None]) -> tuple[str, int | None]:
        """Run a command and return its output and exit code.

        `show` is called with the id of its terminal if the client runs it in one.
        """
        if self._has_terminals:
            return await self._run_in_terminal(command, show)
        return await self._run_process(command)

    async def _run_in_terminal(self, command: str, show: Callable[[str], None]) -> tuple[str, int | None]:
        """Run a command in a terminal of the client."""
        made = await self._call(
            "terminal/create",
            command="/bin/sh",
            args=["-c", command],
            cwd=self._session.cwd,
            outputByteLimit=MAX_OUTPUT_BYTES,
        )
        id = str(made.get("terminalId"))
        show(id)
        try:
            ended = await self._call("terminal/wait_for_exit", terminalId=id)
            output = await self._call("terminal/output", terminalId=id)
        finally:
            self._connection.send("terminal/release", {"sessionId": self._session.id, "terminalId": id})
        return str(output.get("output", "")), ended.get("exitCode")

    async def _run_process(self, command: str) -> tuple[str, int | None]:
        """Run a command as a child process of the agent."""
        process = await asyncio.create_subprocess_shell(
            command,
            cwd=self._session.cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            raise
        return output[:MAX_OUTPUT_BYTES].decode("utf-8", "replace"), process.returncode

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call an ACP method of the client for this session."""
        answer = await self._connection.call(method, {"sessionId": self._session.id, **params})
        return answer if isinstance(answer, dict) else {}


def _read_text(path: str) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _write_text(path: str, text: str) -> None:
    """Write a file, and create the directories above it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
