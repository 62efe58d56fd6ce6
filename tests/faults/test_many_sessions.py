"""Sessions that were run and purged leave no file, socket, thread or child."""

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
SESSIONS = 5000 if FULL else 200
AT_ONCE = 50
DEADLINE = 60.0  # seconds
WARM_UP_ROUNDS = 3  # the server opens in these what it keeps open
MAX_NEW_THREADS = 4  # thread pools start threads when they need them
IGNORED_FILE = "bullpen.db"  # the number of its readers varies


@pytest.mark.timeout(1800)
async def test_sessions_that_were_run_and_purged_leave_nothing_behind(
    tmp_path: Path, workspace: Path
) -> None:
    program = tmp_path / "short"
    program.write_text("#!/bin/sh\necho I ran\n")
    program.chmod(0o755)
    server = Server(tmp_path / "home", workspace, {"SHELL": str(program)})
    server.http.headers["Connection"] = "close"  # so that no connection of the test remains open
    await server.start()
    try:
        for _ in range(WARM_UP_ROUNDS):
            await _run_and_purge(server)
        threads, before = (
            psutil.Process(server.pid).num_threads(),
            await _poll(_leftovers, server, _has_no_sessions),
        )
        for _ in range(SESSIONS // AT_ONCE):
            await _run_and_purge(server)
        assert await _poll(_leftovers, server, lambda found: found == before) == before
        assert psutil.Process(server.pid).num_threads() <= threads + MAX_NEW_THREADS
        assert "[error" not in server.output()
    finally:
        await server.close()


async def _run_and_purge(server: Server) -> None:
    """Start sessions at the same time, wait until the program of each has ended, and purge them all."""
    await asyncio.gather(*(_start_session(server) for _ in range(AT_ONCE)))
    sessions = await _poll(_sessions, server, lambda sessions: all(map(_has_ended, sessions)))
    assert len(sessions) == AT_ONCE
    assert {worker["exitCode"] for session in sessions for worker in session["workers"]} == {0}
    await asyncio.gather(*(_purge(server, session["id"]) for session in sessions))
    assert await _sessions(server) == []


async def _start_session(server: Server) -> None:
    """Start a session with a terminal. Repeat a request if the server closes the idle connection it uses."""

    async def post(path: str, body: dict[str, Any], key: str) -> Any:
        return await server.call("POST", path, 201, json=body, headers={"Idempotency-Key": key})

    place, key = {"locationPath": str(server.workspace)}, str(uuid.uuid4())
    session = await retry_until_answered(lambda: post("/api/sessions", place, key))
    path = f"/api/sessions/{session['id']}/workers"
    await retry_until_answered(lambda: post(path, {"type": "terminal"}, f"{key}-terminal"))


async def _purge(server: Server, session_id: str) -> None:
    answer = await retry_until_answered(lambda: server.http.delete(f"/api/sessions/{session_id}?purge=true"))
    assert answer.status_code in (200, 404), answer.text


async def _sessions(server: Server) -> list[dict[str, Any]]:
    answer = await retry_until_answered(lambda: server.call("GET", "/api/sessions?limit=1000"))
    sessions: list[dict[str, Any]] = answer["sessions"]
    return sessions


def _has_ended(session: dict[str, Any]) -> bool:
    return [worker["state"] for worker in session["workers"]] == ["exited"]


async def _poll(read: Callable[[Server], Any], server: Server, condition: Callable[[Any], bool]) -> Any:
    """Read until the value meets the condition or the deadline has passed; return the last value."""
    end = asyncio.get_running_loop().time() + DEADLINE
    while not condition(value := await read(server)) and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(0.1)
    return value


def _has_no_sessions(leftovers: dict[str, Any]) -> bool:
    """Return whether no child, connection or spool of an earlier session is open."""
    spools = [name for name in leftovers["open"] if "spool" in name]
    return not (leftovers["children"] or leftovers["connections"] or spools)


async def _leftovers(server: Server) -> dict[str, Any]:
    """Return everything that a purged session could leave behind."""
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
        except FileNotFoundError:  # closed meanwhile
            continue
        if IGNORED_FILE not in target:
            found[target.partition(":[")[0]] += 1
    return found
