"""The programs in docs/examples do what their docstrings say, with a real server."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bullpen.client import Client
from support.commands import CommandResult
from support.server import Server

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


async def start(server: Server, name: str, *arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, EXAMPLES / name, *arguments, env=server.environment(), stdout=PIPE, stderr=PIPE
    )


async def run(server: Server, name: str, *arguments: str) -> CommandResult:
    process = await start(server, name, *arguments)
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode is not None
    return CommandResult(process.returncode, out.decode(), err.decode())


def test_every_example_is_used_in_this_file() -> None:
    source = Path(__file__).read_text()
    assert [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in source] == []


@pytest.mark.parametrize("code", [0, 7])
async def test_a_ci_job_prints_the_output_and_exits_with_the_code(server: Server, code: int) -> None:
    script = f"echo answer $((20 + 22)); exit {code}"
    done = await run(server, "ci_job.py", str(server.workspace), "sh", "-c", script)
    assert (done.code, done.err) == (code, "")
    assert "answer 42\r\n" in done.out
    (session,) = (await server.call("GET", "/api/sessions"))["sessions"]
    assert (session["status"], session["title"][:4]) == ("completed", "ci: ")


async def test_a_ci_job_with_a_missing_program_fails(server: Server) -> None:
    done = await run(server, "ci_job.py", str(server.workspace), "no-such-program")
    assert (done.code, done.out) == (1, "")
    assert done.err == "ci_job.py: cannot start no-such-program: there is no such program\n"
    (session,) = (await server.call("GET", "/api/sessions"))["sessions"]
    assert (session["status"], session["workers"]) == ("completed", [])


async def test_a_ci_job_continues_while_the_server_is_killed(server: Server, workspace: Path) -> None:
    script = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended $((1 + 1)); exit 3"
    process = await start(server, "ci_job.py", str(workspace), "sh", "-c", script)
    async with asyncio.timeout(60):
        assert process.stdout is not None
        assert await process.stdout.readline() == b"begun\r\n"
        await server.restart()
        (workspace / "go").touch()
        out, _ = await process.communicate()
    assert process.returncode == 3
    assert out.count(b"ended 2\r\n") == 1


class FakeChat:
    """A webhook that records the lines it receives."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.url = ""
        self._received = asyncio.Condition()

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator["FakeChat"]:
        chat = cls()
        server = await asyncio.start_server(chat._receive, "127.0.0.1", 0)
        chat.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
        async with server:
            yield chat

    async def until_received(self, line: str) -> None:
        async with asyncio.timeout(30), self._received:
            await self._received.wait_for(lambda: line in self.lines)

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length: ")[1].split("\r\n")[0])
        line = json.loads(await reader.readexactly(length))["text"]
        async with self._received:
            self.lines.append(line)
            self._received.notify_all()
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


async def test_a_bridge_posts_the_events_of_every_session_to_a_chat(server: Server) -> None:
    old = await server.new_session(title="old")
    async with FakeChat.open() as chat, Client(server.url, server.token) as client:
        process = await start(server, "chat_bridge.py", chat.url)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(30):
                assert b"following 1 sessions" in await process.stdout.readline()
            await server.new_session(title="new")
            await chat.until_received("new has started")
            worker = await server.new_terminal(old["id"])
            async with client.terminal(old["id"], worker["id"]) as terminal:
                await terminal.write(b"exit 4\n")
                await chat.until_received("old/terminal ended with code 4")
            await server.restart()
            await client.complete_session(old["id"])
            await chat.until_received("old has ended: user_request")
        finally:
            process.kill()
            await process.wait()
    assert chat.lines == [
        "new has started",
        "old/terminal ended with code 4",
        "old has ended: user_request",
    ]


async def test_a_nightly_run_runs_commands_in_parallel_and_prints_a_summary(
    server: Server, workspace: Path
) -> None:
    wait_for_other = "touch {0}; while [ ! -e {1} ]; do sleep 0.05; done"
    done = await run(
        server,
        "nightly_run.py",
        str(workspace),
        f"lint={wait_for_other.format('left', 'right')}",  # each program ends only after both have started
        f"test={wait_for_other.format('right', 'left')}; echo br''oken; false",
    )
    lines = done.out.splitlines()
    assert (done.code, done.err) == (1, "")
    assert lines[0].startswith("lint: ok after ")
    assert lines[1].startswith("test: failed with code 1 after ")
    assert "    broken" in lines
    assert lines[-1] == "1 of 2 succeeded"
    (session,) = (await server.call("GET", "/api/sessions"))["sessions"]
    assert sorted(worker["role"] for worker in session["workers"]) == ["lint", "test"]
