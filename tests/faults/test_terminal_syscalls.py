"""The server is killed at system calls that store or send, while a terminal is used and in its recovery."""

import asyncio
import sys
import uuid
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from support.auto_restarter import AutoRestarter
from support.retrying_client import retry_until_answered
from support.server import Server
from support.strace import kill_at_each, share_points
from support.terminal_viewer import TerminalViewer, TerminalWriter

CALLS_IN_A_ROUND = {"fdatasync": 3, "writev": 10, "write": 45, "pwrite64": 50}  # at least so many
SHARES = share_points(CALLS_IN_A_ROUND, tests=8)

READER = """
import os, sys, tty
tty.setraw(0)
os.write(1, b"ready")
journal = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
while data := os.read(0, 65536):
    os.write(journal, data)
    os.write(1, b"<" + data + b">")
"""


@pytest.mark.parametrize("share", range(len(SHARES)))
async def test_a_kill_at_any_syscall_while_a_terminal_is_used_loses_and_repeats_nothing(
    server: Server, workspace: Path, share: int
) -> None:
    program = workspace / "reader.py"
    program.write_text(READER)
    session = await server.new_session()

    async def one_round(stack: AsyncExitStack, number: int) -> int:
        stubborn = AutoRestarter(server, stack)
        await _one_round(server, session["id"], program, workspace / f"journal-{number}")
        await stubborn.close()
        return stubborn.deaths

    rounds = await kill_at_each(server, SHARES[share], CALLS_IN_A_ROUND, one_round)
    await _check_log(server, session["id"], rounds)


async def _one_round(server: Server, session_id: str, program: Path, journal: Path) -> None:
    """Create a terminal, type into it, and end it. Repeat each order until it is answered."""
    path = f"/api/sessions/{session_id}/workers"
    key = {"Idempotency-Key": str(uuid.uuid4())}

    async def make() -> dict[str, Any]:
        made: dict[str, Any] = await server.call("POST", path, 201, json={"type": "terminal"}, headers=key)
        return made

    worker = await retry_until_answered(make)
    running = await retry_until_answered(lambda: server.worker_in(session_id, worker["id"], "active"))
    writer = TerminalWriter(server, session_id, worker["id"], "writer")
    viewer = TerminalViewer(server, session_id, worker["id"])
    async with viewer.watching(), asyncio.timeout(120):
        await writer.type(f"stty -echo; PS1=; exec {sys.executable} {program} {journal}\n")
        await viewer.until_seen(b"ready")
        for batch in ("one ", "two ", "three "):
            await writer.type(batch)
        await viewer.until_seen(b"three ")
        after = await retry_until_answered(lambda: server.worker_in(session_id, worker["id"], "active"))
        assert after["pid"] == running["pid"]
    assert journal.read_text() == "one two three "
    output = bytes(viewer.data).split(b"ready")[-1]
    assert output.replace(b"><", b"") == b"<one two three >"
    ended = await retry_until_answered(lambda: server.call("DELETE", f"{path}/{worker['id']}"))
    assert ended["state"] == "terminated"
    assert not Path(f"/proc/{running['pid']}").exists()


async def _check_log(server: Server, session_id: str, rounds: int) -> None:
    log = (await server.call("GET", f"/api/sessions/{session_id}/events", params={"limit": 10_000}))["events"]
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    for kind in ("worker_spawning", "worker_ready", "worker_terminated"):
        assert sum(event["type"] == kind for event in log) == rounds, kind
