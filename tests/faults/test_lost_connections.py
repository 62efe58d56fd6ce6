"""Connections are cut at random moments: no event and no input is lost or repeated."""

import asyncio
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from support.server import Server
from support.terminal_viewer import CONNECTION_ERRORS, TerminalViewer

CUTS = 10_000 if os.environ.get("BULLPEN_FAULTS") == "full" else 300

READER = """
import os, sys, tty
tty.setraw(0)
os.write(1, b"ready")
while data := os.read(0, 65536):
    with open(sys.argv[1], "ab") as journal:
        journal.write(data)
"""


class Follower:
    """Follows a session's events by seq and cuts its own connections."""

    def __init__(self, server: Server, session_id: str) -> None:
        self.events: list[dict[str, Any]] = []
        self._server = server
        self._path = f"/ws/session/{session_id}"

    async def follow_and_cut(self) -> None:
        """Open one connection, subscribe, read up to three frames, and abort without a closing handshake."""
        frames = random.randrange(4)
        try:
            async with self._server.socket(self._path) as ws:
                after = self.events[-1]["seq"] if self.events else 0
                await ws.send(json.dumps({"type": "subscribe", "after": after}))
                for _ in range(frames):
                    self._take(json.loads(await asyncio.wait_for(ws.recv(), 1)))
                await asyncio.sleep(random.uniform(0, 0.003))
                ws.transport.abort()
        except CONNECTION_ERRORS:
            return

    async def catch_up(self, head: int) -> None:
        async with self._server.socket(self._path) as ws:
            await ws.send(
                json.dumps({"type": "subscribe", "after": self.events[-1]["seq"] if self.events else 0})
            )
            while not self.events or self.events[-1]["seq"] < head:
                self._take(json.loads(await asyncio.wait_for(ws.recv(), 60)))

    def _take(self, message: dict[str, Any]) -> None:
        assert message["type"] in ("events", "heartbeat"), message
        for event in message.get("events", ()):
            assert event["seq"] == (self.events[-1]["seq"] if self.events else 0) + 1
            self.events.append(event)


async def test_followers_whose_connection_is_cut_get_every_event_once(server: Server) -> None:
    session = await server.new_session()
    followers = [Follower(server, session["id"]) for _ in range(3)]
    done = asyncio.Event()

    async def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            await server.call("PATCH", f"/api/sessions/{session['id']}", json={"title": f"title {number}"})

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(write())
        await asyncio.gather(*(_cut(follower, CUTS // 3) for follower in followers))
        done.set()
    stored = await server.call("GET", f"/api/sessions/{session['id']}/events", params={"limit": 10_000})
    log = stored["events"]
    while log[-1]["seq"] < stored["head"]:
        page = await server.call(
            "GET", f"/api/sessions/{session['id']}/events", params={"after": log[-1]["seq"], "limit": 10_000}
        )
        log += page["events"]
    for follower in followers:
        await follower.catch_up(stored["head"])
        assert follower.events == log


async def _cut(follower: Follower, times: int) -> None:
    for _ in range(times):
        await follower.follow_and_cut()


async def test_input_whose_connection_is_cut_after_sending_reaches_the_child_once(
    server: Server, workspace: Path
) -> None:
    program, journal = workspace / "reader.py", workspace / "journal"
    program.write_text(READER)
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    path = f"/ws/session/{session['id']}/worker/{worker['id']}?after=0&client=cutter"
    batches = [f"{number:05d} " for number in range(CUTS // 3)]
    async with server.socket(path) as ws:
        await ws.send(
            json.dumps({"type": "input", "n": 1, "data": f"exec {sys.executable} {program} {journal}\n"})
        )
        viewer = TerminalViewer(server, session["id"], worker["id"])
        async with viewer.watching():
            await viewer.until_seen(b"ready")
    acknowledged = 1
    while acknowledged <= len(batches):
        try:
            async with server.socket(path) as ws:
                ahead = random.randrange(1, 6)
                for n in range(acknowledged + 1, min(acknowledged + ahead, len(batches) + 1) + 1):
                    await ws.send(json.dumps({"type": "input", "n": n, "data": batches[n - 2]}))
                for _ in range(random.randrange(4)):
                    message = await asyncio.wait_for(ws.recv(), 1)
                    if isinstance(message, str) and (ack := json.loads(message))["type"] == "ack":
                        acknowledged = max(acknowledged, ack["n"])
                ws.transport.abort()
        except CONNECTION_ERRORS:
            continue
    async with asyncio.timeout(60):
        while len(journal.read_bytes()) < 6 * len(batches):
            await asyncio.sleep(0.01)
    assert journal.read_text() == "".join(batches)
