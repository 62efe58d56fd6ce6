"""What the demo agent does to files and with commands: through the client where it offers to, else itself."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

from .acp_connection import AcpConnection, ClientError
from .conversation_store import DemoConversation

OUTPUT_LIMIT = 64 << 10


class ToolRunner:
    def __init__(self, link: AcpConnection, session: DemoConversation, capabilities: dict[str, Any]) -> None:
        self._link = link
        self._session = session
        files = capabilities.get("fs")
        self._files = files if isinstance(files, dict) else {}
        self._has_terminals = bool(capabilities.get("terminal"))

    def find(self, name: str) -> str | None:
        """The path of a file in the workspace; None when it lies outside."""
        root = os.path.realpath(self._session.cwd)
        path = os.path.realpath(os.path.join(root, name))
        return path if os.path.commonpath([root, path]) == root else None

    async def read(self, path: str) -> str:
        """The text of a file; empty when it is not there yet."""
        if not self._files.get("readTextFile"):
            return _text_of(path)
        try:
            answer = await self._ask("fs/read_text_file", path=path)
        except ClientError:
            return ""
        return str(answer.get("content", ""))

    async def write(self, path: str, text: str) -> None:
        if self._files.get("writeTextFile"):
            await self._ask("fs/write_text_file", path=path, content=text)
        else:
            _put_text(path, text)

    async def run(self, command: str, show: Callable[[str], None]) -> tuple[str, int | None]:
        """What a command printed and its exit code; `show` gets the name of its terminal, if it has one."""
        if self._has_terminals:
            return await self._run_in_terminal(command, show)
        return await self._run_here(command)

    async def _run_in_terminal(self, command: str, show: Callable[[str], None]) -> tuple[str, int | None]:
        made = await self._ask(
            "terminal/create",
            command="/bin/sh",
            args=["-c", command],
            cwd=self._session.cwd,
            outputByteLimit=OUTPUT_LIMIT,
        )
        id = str(made.get("terminalId"))
        show(id)
        try:
            ended = await self._ask("terminal/wait_for_exit", terminalId=id)
            said = await self._ask("terminal/output", terminalId=id)
        finally:
            self._link.send("terminal/release", {"sessionId": self._session.id, "terminalId": id})
        return str(said.get("output", "")), ended.get("exitCode")

    async def _run_here(self, command: str) -> tuple[str, int | None]:
        process = await asyncio.create_subprocess_shell(
            command,
            cwd=self._session.cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            said, _ = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            raise
        return said[:OUTPUT_LIMIT].decode("utf-8", "replace"), process.returncode

    async def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        answer = await self._link.call(method, {"sessionId": self._session.id, **params})
        return answer if isinstance(answer, dict) else {}


def _text_of(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _put_text(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
