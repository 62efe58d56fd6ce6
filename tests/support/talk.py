"""A server with the scripted agent in it, and what tests of conversations say to it."""

import asyncio
import json
import sys
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from .server import Server

SCRIPTED = Path(__file__).parents[1] / "agents" / "scripted.py"
SECONDS = 60.0

T = TypeVar("T")


async def define_scripted(
    server: Server, agent_id: str = "scripted", script: Any = None, **more: Any
) -> Path:
    """Define the scripted agent by REST, with more settings; return its journal."""
    journal = server.home.parent / f"{agent_id}.journal"
    command = [sys.executable, str(SCRIPTED), "--journal", str(journal)]
    if script is not None:
        path = server.home.parent / f"{agent_id}.json"
        path.write_text(json.dumps(script))
        command += ["--script", str(path)]
    body = {"name": agent_id.capitalize(), "kind": "acp", "command": command, **more}
    await server.call("PUT", f"/api/agents/{agent_id}", 200, json=body)
    return journal


class Talk:
    """One session with an agent, as a client sees it."""

    seconds: ClassVar[float] = SECONDS

    def __init__(self, server: Server, session: dict[str, Any]) -> None:
        self.server = server
        self.id: str = session["id"]
        self.path = f"/api/sessions/{self.id}"

    @classmethod
    async def begin(cls, server: Server, agent_id: str = "scripted", **body: Any) -> Self:
        """A session whose agent is ready."""
        talk = cls(server, await server.new_session(agentId=agent_id, **body))
        await talk.seen("agent_session")
        return talk

    async def prompt(self, text: str, expect: int = 202, **body: Any) -> Any:
        body.setdefault("promptId", str(uuid.uuid4()))
        return await self.server.call("POST", f"{self.path}/prompt", expect, json={"text": text, **body})

    async def ask(self, text: str, **body: Any) -> dict[str, Any]:
        """A prompt and the end of its turn."""
        prompted = await self.prompt(text, **body)
        start = await self.seen("turn_start", promptId=prompted["promptId"])
        return await self.seen("turn_end", after=start["seq"])

    async def events(self, after: int = 0) -> list[dict[str, Any]]:
        page = await self.server.call("GET", f"{self.path}/events?after={after}&limit=10000")
        events: list[dict[str, Any]] = page["events"]
        return events

    async def seen(self, type: str, after: int = 0, **data: Any) -> dict[str, Any]:
        """The first event of a type with these values in it, now or soon."""

        async def look() -> dict[str, Any] | None:
            found = (each for each in await self.events(after) if each["type"] == type)
            return next((each for each in found if data.items() <= each["data"].items()), None)

        return await self._until(look, f"{type} {data}")

    async def said(self) -> str:
        """All the agent's text so far."""
        events = await self.events()
        return "".join(each["data"]["text"] for each in events if each["type"] == "agent_message")

    async def tools(self) -> list[str]:
        """What became of each tool call, in their order."""
        states: dict[str, str] = {}
        for event in await self.events():
            if event["type"] in ("tool_call", "tool_call_update"):
                call = event["data"]
                states[call["toolCallId"]] = call.get("status", states.get(call["toolCallId"], ""))
        return list(states.values())

    async def permission(self) -> dict[str, Any]:
        """The one open permission, now or soon."""

        async def look() -> dict[str, Any] | None:
            found = (await self.server.call("GET", f"{self.path}/permissions"))["permissions"]
            assert len(found) < 2, found
            return found[0] if found else None

        return await self._until(look, "open permission")

    async def worker(self) -> dict[str, Any]:
        (worker,) = (await self.server.call("GET", f"{self.path}/workers"))["workers"]
        assert isinstance(worker, dict)
        return worker

    async def _until(self, look: Callable[[], Awaitable[T | None]], wanted: str) -> T:
        """What is looked for, now or soon; the log tells why it never came."""
        try:
            async with asyncio.timeout(self.seconds):
                while (found := await look()) is None:
                    await asyncio.sleep(0.02)
                return found
        except TimeoutError:
            told = [f"{each['seq']} {each['type']} {each['data']}" for each in await self.events()]
            raise AssertionError(f"no {wanted} among:\n" + "\n".join(told)[-4000:]) from None
