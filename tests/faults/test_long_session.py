"""A session of a million events opens like a short one: the server sends a page of it, in bounded memory."""

import json
import os
from pathlib import Path
from typing import Any

import psutil
import pytest
from websockets.asyncio.client import ClientConnection

from bullpen.domain.events import Draft, SessionStart
from bullpen.log.log import SessionLog
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from support.sample_events import error_draft
from support.server import Server

EVENTS = 1_000_000 if os.environ.get("BULLPEN_FAULTS") == "full" else 40_000
SHORT = 1_000
EVENTS_PER_APPEND = 2_000
PAGE = 200
TEXT = "x" * 1500  # all events together are much larger than the allowed growth
MAX_GROWTH_BYTES = 32 << 20


@pytest.mark.timeout(1800)
async def test_a_very_long_session_opens_like_a_short_one(tmp_path: Path, workspace: Path) -> None:
    server = Server(tmp_path / "home", workspace)
    server.home.mkdir(mode=0o700)
    async with Database.open(f"sqlite:///{server.home / 'bullpen.db'}") as database:
        store = EventStore(database)
        await _write(store, "short", workspace, SHORT)
        await _write(store, "long", workspace, EVENTS)
    await server.start()
    try:
        await _open(server, "short", SHORT)
        before = psutil.Process(server.pid).memory_info().rss
        await _open(server, "long", EVENTS)
        assert psutil.Process(server.pid).memory_info().rss - before < MAX_GROWTH_BYTES
    finally:
        await server.close()


async def _write(store: EventStore, session_id: str, workspace: Path, count: int) -> None:
    start = SessionStart(session_type="quick", location_path=str(workspace), title=session_id)
    log = await SessionLog.create(store, session_id, [Draft(start)])
    while (left := count - log.head) > 0:
        await log.append(
            [error_draft(f"{log.head + n} {TEXT}") for n in range(1, min(left, EVENTS_PER_APPEND) + 1)]
        )


async def _open(server: Server, session_id: str, count: int) -> None:
    """Open a session as the page does: read it, its newest events and older ones, and then follow it."""
    path = f"/api/sessions/{session_id}"
    session = await server.call("GET", path)
    assert session["lastSeq"] == count
    newest = await _page(server, path, count + 1)
    assert newest == list(range(count - PAGE + 1, count + 1))
    assert await _page(server, path, newest[0]) == list(range(count - 2 * PAGE + 1, count - PAGE + 1))
    async with server.socket(f"/ws/session/{session_id}") as ws:
        await ws.send(json.dumps({"type": "subscribe", "after": count}))
        await server.call("PATCH", path, json={"title": "renamed"})
        frame = await _next_frame(ws)
        assert [event["seq"] for event in frame["events"]] == [count + 1]
    async with server.socket(f"/ws/session/{session_id}") as ws:  # a client that has only the first event
        await ws.send(json.dumps({"type": "subscribe", "after": 1}))
        frame = await _next_frame(ws)
        assert frame["type"] == ("snapshot" if count > 10_000 else "events")


async def _next_frame(ws: ClientConnection) -> dict[str, Any]:
    """Return the next frame that is no heartbeat."""
    while (frame := json.loads(await ws.recv()))["type"] == "heartbeat":
        continue
    return dict(frame)


async def _page(server: Server, path: str, before: int) -> list[int]:
    page = await server.call("GET", f"{path}/events?before={before}&limit={PAGE}&newest=true")
    return [event["seq"] for event in page["events"]]
