"""A REST client of one session with an agent, and the definition of the scripted agent."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from .polling import Polling
from .scripted_agent.command import scripted_command
from .server import Server

SECONDS = 60.0

T = TypeVar("T")


async def define_scripted(
    server: Server, agent_id: str = "scripted", script: Any = None, **more: Any
) -> Path:
    """Define the scripted agent by REST; `more` are other fields of the definition. Return its journal."""
    journal = server.home.parent / f"{agent_id}.journal"
    path = None if script is None else server.home.parent / f"{agent_id}.json"
    if path is not None:
        path.write_text(json.dumps(script))
    command = scripted_command(journal, path)
    state = [f"{server.home.parent}/"]  # of the journal
    body = {"name": agent_id.capitalize(), "kind": "acp", "command": command, "state": state, **more}
    await server.call("PUT", f"/api/agents/{agent_id}", 200, json=body)
    return journal


class SessionClient:
    """REST client of one session with an agent. Methods wait until the server has the expected state."""

    seconds: ClassVar[float] = SECONDS

    def __init__(self, server: Server, session: dict[str, Any]) -> None:
        self.server = server
        self.id: str = session["id"]
        self.path = f"/api/sessions/{self.id}"

    @classmethod
    async def begin(cls, server: Server, agent_id: str = "scripted", **body: Any) -> Self:
        """Create a session and wait until its agent is ready."""
        client = cls(server, await server.new_session(agentId=agent_id, **body))
        await client.wait_for_event("agent_session")
        return client

    async def prompt(self, text: str, expect: int = 202, **body: Any) -> Any:
        body.setdefault("promptId", str(uuid.uuid4()))
        return await self.server.call("POST", f"{self.path}/prompt", expect, json={"text": text, **body})

    async def run_turn(self, text: str, **body: Any) -> dict[str, Any]:
        """Send a prompt and wait for the end of its turn; return the event turn_end."""
        prompted = await self.prompt(text, **body)
        start = await self.wait_for_event("turn_start", promptId=prompted["promptId"])
        return await self.wait_for_event("turn_end", after=start["seq"])

    async def events(self, after: int = 0) -> list[dict[str, Any]]:
        page = await self.server.call("GET", f"{self.path}/events?after={after}&limit=10000")
        events: list[dict[str, Any]] = page["events"]
        return events

    async def wait_for_event(self, type: str, after: int = 0, **data: Any) -> dict[str, Any]:
        """Wait for the first event of a type with this data and a seq above `after`; return it."""

        async def find() -> dict[str, Any] | None:
            nonlocal after
            for each in await self.events(after):
                if each["type"] == type and data.items() <= each["data"].items():
                    return each
                after = each["seq"]
            return None

        return await self._until(find, f"{type} {data}")

    async def agent_text(self) -> str:
        """Return the text that the agent has sent in this session."""
        events = await self.events()
        return "".join(each["data"]["text"] for each in events if each["type"] == "agent_message")

    async def tool_statuses(self) -> list[str]:
        """Return the last status of each tool call, in the order of the calls."""
        statuses: dict[str, str] = {}
        for event in await self.events():
            if event["type"] in ("tool_call", "tool_call_update"):
                call = event["data"]
                statuses[call["toolCallId"]] = call.get("status", statuses.get(call["toolCallId"], ""))
        return list(statuses.values())

    async def open_permission(self) -> dict[str, Any]:
        """Wait until a permission is open; return it. The session has at most one."""

        async def find() -> dict[str, Any] | None:
            found = (await self.server.call("GET", f"{self.path}/permissions"))["permissions"]
            assert len(found) < 2, found
            return found[0] if found else None

        return await self._until(find, "open permission")

    async def worker(self) -> dict[str, Any]:
        (worker,) = (await self.server.call("GET", f"{self.path}/workers"))["workers"]
        assert isinstance(worker, dict)
        return worker

    async def _until(self, find: Callable[[], Awaitable[T | None]], wanted: str) -> T:
        """Wait until `find` returns a value; return it. After the deadline, raise an error with the log."""
        polling = Polling()
        try:
            async with asyncio.timeout(self.seconds):
                while (found := await find()) is None:
                    await polling.pause()
                return found
        except TimeoutError:
            events = [f"{each['seq']} {each['type']} {each['data']}" for each in await self.events()]
            raise AssertionError(f"no {wanted} among:\n" + "\n".join(events)[-4000:]) from None
