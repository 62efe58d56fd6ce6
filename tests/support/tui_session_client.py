"""A client of one session with the terminal agent of tests (agents/tui.py), and its definition."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Self

from .server import Server
from .session_client import SECONDS, SessionClient

TUI = Path(__file__).parents[1] / "agents" / "tui.py"
SCREEN_PATTERNS = {
    "asking": [r"Allow this\? \(y/n\)"],
    "busy": [r"esc to interrupt"],
    "idle": [r"^>( |$)"],
    "settle": 0.4,
}
FAST_SCREEN = {"screen_check": 0.05, "screen_settle": 0.1}  # intervals of a server that reads its screen
IGNORE_SIGNALS = ["/bin/sh", "-c", 'trap "" HUP TERM; exec "$@"', "sh"]  # only SIGKILL ends its child


async def define_tui(
    server: Server,
    agent_id: str = "tui",
    plain: bool = False,
    slow: bool = False,
    ignore_signals: bool = False,
    **more: Any,
) -> Path:
    """Define the terminal agent by REST; return its journal.

    A `plain` agent shows no patterns on its screen, a `slow` one delays its reading, and one with
    `ignore_signals` ends only by SIGKILL.
    """
    journal = server.home.parent / f"{agent_id}.journal"
    options = [*(["--plain"] if plain else []), *(["--slow"] if slow else [])]
    program = [sys.executable, "-S", str(TUI), "--journal", str(journal), *options]
    command = [*IGNORE_SIGNALS, *program] if ignore_signals else program
    body = {
        "name": agent_id.capitalize(),
        "kind": "pty",
        "command": [*command, "{sessionId}"],
        "continueCommand": [*command, "again", "{sessionId}"],
        "state": [f"{server.home.parent}/"],  # of the journal
        "signs": {"silence": 1.0} if plain else SCREEN_PATTERNS,
        "keys": {"echo": 0.2} if plain else {},
        **more,
    }
    await server.call("PUT", f"/api/agents/{agent_id}", 200, json=body)
    return journal


def journal_of(path: Path, kind: str) -> list[Any]:
    """Return the journal's entries of one kind, in order."""
    if not path.exists():
        return []
    return [line[kind] for line in map(json.loads, path.read_text().splitlines()) if kind in line]


class TuiSessionClient(SessionClient):
    """Client of one session with the terminal agent."""

    @classmethod
    async def begin(cls, server: Server, agent_id: str = "tui", **body: Any) -> Self:
        """Create a session and wait until its agent waits for a prompt."""
        client = cls(server, await server.new_session(agentId=agent_id, **body))
        await client.wait_for_activity("idle")
        await client.wait_until_listening(server.home.parent / f"{agent_id}.journal")
        return client

    async def wait_until_listening(self, journal: Path) -> None:
        """Wait until this run of the agent has written to its journal.

        On a busy machine, the server judges an agent without screen patterns idle before it has started.
        """
        worker = await self.worker()
        run = f"{worker['id']}/{worker['run']}"

        async def find() -> bool | None:
            return run in journal_of(journal, "run") or None

        await self._until(find, "agent that listens")

    async def wait_for_activity(self, activity: str, after: int = 0) -> dict[str, Any]:
        return await self.wait_for_event("worker_activity", after, activity=activity)

    async def activities(self) -> list[str]:
        return [e["data"]["activity"] for e in await self.events() if e["type"] == "worker_activity"]

    async def type(self, data: str, n: int = 1) -> None:
        """Type in the terminal and wait for the acknowledgement. The server accepts each number `n` once."""
        worker = await self.worker()
        async with self.server.socket(f"/ws/session/{self.id}/worker/{worker['id']}?client=me") as ws:
            await ws.send(json.dumps({"type": "input", "n": n, "data": data}))
            async with asyncio.timeout(SECONDS):
                async for message in ws:
                    if isinstance(message, str) and json.loads(message)["type"] == "ack":
                        return
