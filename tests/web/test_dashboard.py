"""WS /ws/dashboard: news of every session, from its beginning to its end."""

import asyncio
import json
from typing import Any

from websockets.asyncio.client import ClientConnection

from support.intervals import in_environment
from support.server import Server


async def next_news(ws: ClientConnection, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (message := json.loads(await ws.recv()))["type"] != kind:
            continue
    return dict(message)


async def test_a_viewer_hears_of_a_session_made_changed_and_purged(server: Server) -> None:
    async with server.socket("/ws/dashboard") as ws:
        assert (await next_news(ws, "sessions"))["sessions"] == []
        made = await server.new_session(title="first")
        assert (await next_news(ws, "session"))["session"]["id"] == made["id"]
        await server.call("PATCH", f"/api/sessions/{made['id']}", json={"title": "second"})
        assert (await next_news(ws, "session"))["session"]["title"] == "second"
        await server.call("DELETE", f"/api/sessions/{made['id']}", params={"purge": True})
        assert (await next_news(ws, "removed"))["sessionId"] == made["id"]


async def test_a_viewer_of_a_quiet_house_hears_that_the_server_is_there(server: Server) -> None:
    server.set(**in_environment(heartbeat=0.2))
    await server.restart()
    async with server.socket("/ws/dashboard") as ws:
        assert await next_news(ws, "heartbeat") == {"type": "heartbeat"}
