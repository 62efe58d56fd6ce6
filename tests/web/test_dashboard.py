"""The socket `/ws/dashboard`: a message for every change of every session."""

import asyncio
import json
from typing import Any

from websockets.asyncio.client import ClientConnection

from support.intervals import in_environment
from support.server import Server


async def next_message(ws: ClientConnection, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (message := json.loads(await ws.recv()))["type"] != kind:
            continue
    return dict(message)


async def test_the_dashboard_shows_a_session_created_changed_and_purged(server: Server) -> None:
    async with server.socket("/ws/dashboard") as ws:
        assert (await next_message(ws, "sessions"))["sessions"] == []
        session = await server.new_session(title="first")
        assert (await next_message(ws, "session"))["session"]["id"] == session["id"]
        await server.call("PATCH", f"/api/sessions/{session['id']}", json={"title": "second"})
        assert (await next_message(ws, "session"))["session"]["title"] == "second"
        await server.call("DELETE", f"/api/sessions/{session['id']}", params={"purge": True})
        assert (await next_message(ws, "removed"))["sessionId"] == session["id"]


async def test_an_idle_dashboard_socket_receives_heartbeats(server: Server) -> None:
    server.set(**in_environment(heartbeat=0.2))
    await server.restart()
    async with server.socket("/ws/dashboard") as ws:
        assert await next_message(ws, "heartbeat") == {"type": "heartbeat"}
