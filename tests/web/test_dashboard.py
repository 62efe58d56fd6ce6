"""The socket `/ws/dashboard`: a message for every change of every session."""

import asyncio
import json
from typing import Any

from websockets.asyncio.client import ClientConnection

from support.intervals import in_environment
from support.server import Server
from support.session_client import SessionClient, define_scripted


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


async def needed(ws: ClientConnection, need: str) -> dict[str, Any]:
    """Wait until a session needs something, and return the session."""
    while (session := (await next_message(ws, "session"))["session"])["attention"]["need"] != need:
        continue
    return dict(session)


async def test_the_dashboard_shows_what_a_session_needs_until_a_user_has_seen_it(server: Server) -> None:
    await define_scripted(server)
    agent = await SessionClient.begin(server)
    async with server.socket("/ws/dashboard") as ws:
        await agent.prompt("[[permission]]")
        asking = await needed(ws, "asking")
        assert asking["attention"]["why"] == (await server.call("GET", "/api/inbox"))["items"][0]["text"]
        await server.call("POST", f"/api/sessions/{agent.id}/cancel")
        await agent.wait_for_event("turn_end")
        await agent.run_turn("[[chunk hello]]")
        await needed(ws, "done")
        assert (await server.call("GET", f"/api/sessions/{agent.id}"))["attention"]["need"] == "done"
        await server.call("POST", f"/api/sessions/{agent.id}/seen")
        await needed(ws, "idle")
        assert (await server.call("GET", f"/api/sessions/{agent.id}"))["attention"]["need"] == "idle"


async def test_the_dashboard_shows_that_a_session_works_while_a_program_runs_in_its_terminal(
    server: Server,
) -> None:
    server.set(**in_environment(foreground_check=0.05))
    await server.restart()
    session = await server.new_session()
    address = f"/api/sessions/{session['id']}"
    worker = await server.call("POST", f"{address}/workers", 201, json={"type": "terminal"})
    terminal = f"/ws/session/{session['id']}/worker/{worker['id']}"
    async with server.socket("/ws/dashboard") as ws, server.socket(terminal) as keys:
        await keys.send(json.dumps({"type": "input", "data": "sleep 1000\n"}))
        while (await needed(ws, "working"))["attention"]["why"] != "runs sleep":
            continue  # a program of the shell's own start
        assert (await server.call("GET", address))["attention"]["why"] == "runs sleep"
        await keys.send(json.dumps({"type": "input", "data": "\x03"}))
        await needed(ws, "idle")
        assert (await server.call("GET", address))["attention"]["need"] == "idle"
