"""A client that does not give up: it repeats what was not answered, and follows over any number of cuts."""

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

from .server import Server
from .viewer import LOST, check_error

SCRIPTED = Path(__file__).parents[1] / "agents" / "scripted.py"
SECONDS = 120.0

T = TypeVar("T")


def define_scripted(
    workspace: Path, script: dict[str, Any] | None = None, agent_id: str = "scripted", restart: bool = False
) -> Path:
    """Puts a definition of the scripted agent where a person would; returns its journal."""
    journal = workspace.parent / f"{agent_id}.journal"
    command = [sys.executable, str(SCRIPTED), "--journal", str(journal)]
    if script is not None:
        path = workspace.parent / f"{agent_id}.json"
        path.write_text(json.dumps(script))
        command += ["--script", str(path)]
    directory = workspace / ".config" / "bullpen" / "agents"
    directory.mkdir(parents=True, exist_ok=True)
    words = json.dumps(command)
    again = str(restart).lower()
    text = f'name = "{agent_id.capitalize()}"\nkind = "acp"\ncommand = {words}\nrestart = {again}\n'
    (directory / f"{agent_id}.toml").write_text(text)
    return journal


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """Repeats a call until the server lives long enough to answer it."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await call()
            except (httpx.TransportError, *LOST):
                await asyncio.sleep(0.02)


class AgentClient:
    """One session with an agent; `events` is its log as one follower got it."""

    def __init__(self, server: Server, session_id: str) -> None:
        self.server = server
        self.id = session_id
        self.path = f"/api/sessions/{session_id}"
        self.events: list[dict[str, Any]] = []
        self._grown = asyncio.Condition()

    @classmethod
    async def begin(cls, server: Server, agent_id: str = "scripted") -> "AgentClient":
        key = {"Idempotency-Key": str(uuid.uuid4())}
        body = {"locationPath": str(server.workspace), "agentId": agent_id}
        session = await insist(lambda: server.call("POST", "/api/sessions", 201, json=body, headers=key))
        return cls(server, session["id"])

    @asynccontextmanager
    async def following(self) -> AsyncIterator["AgentClient"]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._follow())
            yield self
            task.cancel()

    async def until(self, condition: Callable[[list[dict[str, Any]]], object]) -> None:
        try:
            async with asyncio.timeout(SECONDS), self._grown:
                await self._grown.wait_for(lambda: condition(self.events))
        except TimeoutError:
            tail = [(each["seq"], each["type"], str(each["data"])[:100]) for each in self.events[-20:]]
            raise AssertionError(f"it did not come to that: {tail}") from None

    async def until_length(self, length: int) -> None:
        await self.until(lambda events: len(events) >= length)

    async def until_turns(self, ended: int) -> None:
        await self.until(lambda _: len(self.of_type("turn_end")) >= ended)

    async def until_answered(self, permission_id: str) -> None:
        await self.until(lambda _: permission_id not in self.asked())

    async def prompt(self, text: str, prompt_id: str | None = None, **body: Any) -> dict[str, Any]:
        """The same prompt, however often it has to be sent."""
        body |= {"text": text, "promptId": prompt_id or str(uuid.uuid4())}
        return await insist(lambda: self.server.call("POST", f"{self.path}/prompt", 202, json=body))

    async def answer(self, permission_id: str, option_id: str) -> int:
        """Answers until it is answered; 409 when an earlier try had come through."""

        async def once() -> int:
            path = f"{self.path}/permissions/{permission_id}"
            answer = await self.server.http.post(path, json={"optionId": option_id})
            assert answer.status_code in (204, 409), answer.text
            return answer.status_code

        return await insist(once)

    async def answer_all(self) -> None:
        """Allows whatever is asked, for as long as somebody follows."""
        answered: set[str] = set()
        while True:
            await self.until(lambda _: self.asked() - answered)
            for id in self.asked() - answered:
                answered.add(id)
                await self.answer(id, "yes")

    def asked(self) -> set[str]:
        asked = [each["data"] for each in self.events if each["type"] == "permission"]
        closed = {each["id"] for each in asked if each["status"] != "pending"}
        return {each["id"] for each in asked} - closed

    def of_type(self, type: str) -> list[dict[str, Any]]:
        return [each for each in self.events if each["type"] == type]

    def text(self) -> str:
        return "".join(each["data"]["text"] for each in self.of_type("agent_message"))

    async def get(self, path: str = "") -> Any:
        return await insist(lambda: self.server.call("GET", f"{self.path}{path}"))

    async def log(self) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        while page := (await self.get(f"/events?after={len(events)}&limit=10000"))["events"]:
            events += page
        return events

    async def _follow(self) -> None:
        while True:
            try:
                async with self.server.socket(f"/ws/session/{self.id}") as ws:
                    await ws.send(json.dumps({"type": "subscribe", "after": len(self.events)}))
                    async for message in ws:
                        await self._take(json.loads(message))
            except LOST:
                pass
            await asyncio.sleep(0.02)

    async def _take(self, message: dict[str, Any]) -> None:
        check_error(message)
        assert message["type"] in ("events", "heartbeat"), message
        for event in message.get("events", []):
            assert event["seq"] == len(self.events) + 1, f"got {event['seq']}, stand at {len(self.events)}"
            self.events.append(event)
        async with self._grown:
            self._grown.notify_all()
