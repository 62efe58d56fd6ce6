"""R-14: sessions that have run and are removed leave nothing: no file, socket, thread or child."""

import asyncio
import os
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.retrying_client import retry_until_answered
from support.server import Server

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
SESSIONS = 5000 if FULL else 500
AT_ONCE = 50
DEADLINE = 60.0  # seconds
WARMING = 3  # rounds until what is opened once and for all is open
POOLS = 4  # threads that may have been started since: pools fill up as they are needed
PASSING = "bullpen.db"  # readers of the database


@pytest.mark.timeout(1800)
async def test_r14_sessions_that_come_and_go_leave_nothing_behind(tmp_path: Path, workspace: Path) -> None:
    program = tmp_path / "short"
    program.write_text("#!/bin/sh\necho I ran\n")
    program.chmod(0o755)
    server = Server(tmp_path / "home", workspace, {"SHELL": str(program)})
    server.http.headers["Connection"] = "close"  # none of our own is among what is left
    await server.start()
    try:
        for _ in range(WARMING):
            await _come_and_go(server)
        threads, before = psutil.Process(server.pid).num_threads(), await _wait(_left, server, _is_calm)
        for _ in range(SESSIONS // AT_ONCE):
            await _come_and_go(server)
        assert await _wait(_left, server, lambda left: left == before) == before
        assert psutil.Process(server.pid).num_threads() <= threads + POOLS
        assert "[error" not in server.output()
    finally:
        await server.close()


async def _come_and_go(server: Server) -> None:
    """A few sessions at once: the program of each runs to its end, and all of them are removed."""
    await asyncio.gather(*(_make(server) for _ in range(AT_ONCE)))
    sessions = await _wait(_listed, server, lambda sessions: all(map(_has_ended, sessions)))
    assert len(sessions) == AT_ONCE
    assert {worker["exitCode"] for session in sessions for worker in session["workers"]} == {0}
    await asyncio.gather(*(_purge(server, session["id"]) for session in sessions))
    assert await _listed(server) == []


async def _make(server: Server) -> None:
    """Sent again when the connection is lost: an idle one may be closed in the moment it is used."""

    async def post(path: str, body: dict[str, Any], key: str) -> Any:
        return await server.call("POST", path, 201, json=body, headers={"Idempotency-Key": key})

    place, key = {"locationPath": str(server.workspace)}, str(uuid.uuid4())
    session = await retry_until_answered(lambda: post("/api/sessions", place, key))
    path = f"/api/sessions/{session['id']}/workers"
    await retry_until_answered(lambda: post(path, {"type": "terminal"}, f"{key}-terminal"))


async def _purge(server: Server, session_id: str) -> None:
    answer = await retry_until_answered(lambda: server.http.delete(f"/api/sessions/{session_id}?purge=true"))
    assert answer.status_code in (200, 404), answer.text


async def _listed(server: Server) -> list[dict[str, Any]]:
    answer = await retry_until_answered(lambda: server.call("GET", "/api/sessions?limit=1000"))
    sessions: list[dict[str, Any]] = answer["sessions"]
    return sessions


def _has_ended(session: dict[str, Any]) -> bool:
    return [worker["state"] for worker in session["workers"]] == ["exited"]


async def _wait(look: Callable[[Server], Any], server: Server, good: Callable[[Any], bool]) -> Any:
    """What one sees when it is as it should be, or when that has taken too long."""
    end = asyncio.get_running_loop().time() + DEADLINE
    while not good(seen := await look(server)) and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(0.1)
    return seen


def _is_calm(left: dict[str, Any]) -> bool:
    """Of the first sessions nothing is left either."""
    spools = [name for name in left["open"] if "spool" in name]
    return not (left["children"] or left["connections"] or spools)


async def _left(server: Server) -> dict[str, Any]:
    """All that a session could leave."""
    this = psutil.Process(server.pid)
    (keeper,) = [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(server.home) in (process.info["cmdline"] or ()) and process.pid != this.pid
    ]
    return {
        "open": _open_files(this),
        "open in the keeper": _open_files(keeper),
        "connections": [each.raddr.port for each in this.net_connections("tcp") if each.raddr],
        "children": [child.pid for child in (*this.children(), *keeper.children())],
        "files": sorted(
            str(path.relative_to(server.home)) for path in server.home.rglob("*") if "logs" not in path.parts
        ),
    }


def _open_files(process: psutil.Process) -> Counter[str]:
    found = Counter[str]()
    for fd in Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            target = os.readlink(fd)
        except FileNotFoundError:  # closed in this moment
            continue
        if PASSING not in target:
            found[target.partition(":[")[0]] += 1
    return found
