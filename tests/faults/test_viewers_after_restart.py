"""Sessions that end with their last viewer: after a restart, their viewers may not connect again."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.intervals import in_environment
from support.server import SECONDS, Server

GRACE = 4.0  # seconds


@pytest.fixture
async def server(tmp_path: Path, workspace: Path) -> AsyncIterator[Server]:
    """Start a server that waits for viewers for seconds instead of a minute."""
    short = in_environment(viewer_grace=GRACE, viewer_grace_after_start=GRACE)
    this = Server(tmp_path / "home", workspace, short)
    await this.start()
    yield this
    await this.close()


async def wait_until_ended(server: Server, session: dict[str, Any]) -> dict[str, Any]:
    async with asyncio.timeout(SECONDS):
        while True:
            now: dict[str, Any] = await server.call("GET", f"/api/sessions/{session['id']}")
            if now["status"] != "active":
                return now
            await asyncio.sleep(0.05)


async def test_terminate_sessions_without_viewers_end_after_a_start(server: Server) -> None:
    with_program, empty, visited = [await server.new_session(onLastDisconnect="terminate") for _ in range(3)]
    kept = await server.new_session()
    terminal = await server.new_terminal(with_program["id"])
    await server.restart()
    async with server.socket(f"/ws/session/{visited['id']}") as viewer:
        await viewer.send(json.dumps({"type": "subscribe", "after": 0}))
        await viewer.recv()
        for each in (with_program, empty):
            now = await wait_until_ended(server, each)
            assert (now["status"], now["endReason"]) == ("completed", "last_disconnect")
        async with asyncio.timeout(SECONDS):
            while psutil.pid_exists(terminal["pid"]):  # the process ends after the session (decision 0003)
                await asyncio.sleep(0.05)
        for each in (visited, kept):
            assert (await server.call("GET", f"/api/sessions/{each['id']}"))["status"] == "active"
    await wait_until_ended(server, visited)
