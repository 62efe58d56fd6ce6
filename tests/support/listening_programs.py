"""Start programs in terminals of a session that listen on a port, and read the session's ports."""

import asyncio
import json
from typing import Any

from support.server import SECONDS, Server


async def type_line(server: Server, worker: dict[str, Any], line: str) -> None:
    """Type a line into a terminal and wait until the server acknowledges it."""
    path = f"/ws/session/{worker['sessionId']}/worker/{worker['id']}"
    async with asyncio.timeout(SECONDS), server.socket(path) as ws:
        await ws.send(json.dumps({"type": "input", "n": 1, "data": f"{line}\r"}))
        async for frame in ws:
            if isinstance(frame, str) and json.loads(frame)["type"] == "ack":
                return


async def serve_in_terminal(server: Server, session_id: str, port: int, **body: Any) -> dict[str, Any]:
    """Start a terminal with a web server in it; return the worker."""
    worker = await server.new_terminal(session_id, **body)
    await type_line(server, worker, f"python3 -m http.server {port} --bind 127.0.0.1")
    await until_ports(server, session_id, {port})
    return worker


async def ports_of(server: Server, session_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await server.call("GET", f"/api/sessions/{session_id}/ports"))["ports"]
    return found


async def until_ports(server: Server, session_id: str, ports: set[int]) -> list[dict[str, Any]]:
    """Wait until programs of the session listen on exactly these ports."""
    async with asyncio.timeout(SECONDS):
        while True:
            found = await ports_of(server, session_id)
            if {each["port"] for each in found} == ports:
                return found
            await asyncio.sleep(0.05)
