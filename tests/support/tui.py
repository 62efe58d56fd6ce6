"""The scripted agent in a terminal: how it is defined, and what it was given."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Self

from .server import Server
from .talk import SECONDS, Talk

TUI = Path(__file__).parents[1] / "agents" / "tui.py"
SIGNS = {
    "asking": [r"Allow this\? \(y/n\)"],
    "busy": [r"esc to interrupt"],
    "idle": [r"^>( |$)"],
    "settle": 0.4,
}
STUBBORN = ["/bin/sh", "-c", 'trap "" HUP TERM; exec "$@"', "sh"]  # only KILL ends what it starts


async def define_tui(
    server: Server,
    agent_id: str = "tui",
    plain: bool = False,
    slow: bool = False,
    stubborn: bool = False,
    **more: Any,
) -> Path:
    """Defines it by REST; returns its journal."""
    journal = server.home.parent / f"{agent_id}.journal"
    options = [*(["--plain"] if plain else []), *(["--slow"] if slow else [])]
    program = [sys.executable, str(TUI), "--journal", str(journal), *options]
    command = [*STUBBORN, *program] if stubborn else program
    body = {
        "name": agent_id.capitalize(),
        "kind": "pty",
        "command": [*command, "{sessionId}"],
        "continueCommand": [*command, "again", "{sessionId}"],
        "signs": {"silence": 1.0} if plain else SIGNS,
        "keys": {"echo": 0.2} if plain else {},
        **more,
    }
    await server.call("PUT", f"/api/agents/{agent_id}", 200, json=body)
    return journal


def journal_of(path: Path, kind: str) -> list[Any]:
    """What the agent wrote down of one kind, in order."""
    if not path.exists():
        return []
    return [line[kind] for line in map(json.loads, path.read_text().splitlines()) if kind in line]


class TuiTalk(Talk):
    """One session with such an agent."""

    @classmethod
    async def begin(cls, server: Server, agent_id: str = "tui", **body: Any) -> Self:
        """A session whose agent waits for a prompt."""
        talk = cls(server, await server.new_session(agentId=agent_id, **body))
        await talk.does("idle")
        await talk.listens(server.home.parent / f"{agent_id}.journal")
        return talk

    async def listens(self, journal: Path) -> None:
        """One that shows nothing is thought idle before it is there, on a busy machine."""
        pid = (await self.worker())["pid"]

        async def look() -> bool | None:
            return pid in journal_of(journal, "pid") or None

        await self._until(look, "agent that listens")

    async def does(self, activity: str, after: int = 0) -> dict[str, Any]:
        return await self.seen("worker_activity", after, activity=activity)

    async def activities(self) -> list[str]:
        return [e["data"]["activity"] for e in await self.events() if e["type"] == "worker_activity"]

    async def types(self, data: str, n: int = 1) -> None:
        """What a person types in the terminal; each number is taken once."""
        worker = await self.worker()
        async with self.server.socket(f"/ws/session/{self.id}/worker/{worker['id']}?client=me") as ws:
            await ws.send(json.dumps({"type": "input", "n": n, "data": data}))
            async with asyncio.timeout(SECONDS):
                async for message in ws:
                    if isinstance(message, str) and json.loads(message)["type"] == "ack":
                        return
