"""A client that repeats unanswered requests and follows a session over any number of lost connections."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

from .scripted_agent.command import scripted_command
from .server import Server
from .terminal_viewer import CONNECTION_ERRORS, check_error

SECONDS = 120.0

T = TypeVar("T")


def define_scripted(
    workspace: Path, script: dict[str, Any] | None = None, agent_id: str = "scripted", restart: bool = False
) -> Path:
    """Write a definition file of the scripted agent to the user's configuration; return its journal."""
    journal = workspace.parent / f"{agent_id}.journal"
    path = workspace.parent / f"{agent_id}.json"
    path.write_text(json.dumps(script or {}))
    command = scripted_command(journal, path)
    directory = workspace / ".config" / "bullpen" / "agents"
    directory.mkdir(parents=True, exist_ok=True)
    text = f'name = "{agent_id.capitalize()}"\nkind = "acp"\ncommand = {json.dumps(command)}\n'
    text += f'state = ["{workspace.parent}/"]\n'
    text += f"restart = {str(restart).lower()}\n"
    (directory / f"{agent_id}.toml").write_text(text)
    return journal


async def retry_until_answered(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call until the server, which may be killed meanwhile, answers it."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await call()
            except (httpx.TransportError, *CONNECTION_ERRORS):
                await asyncio.sleep(0.02)


class RetryingClient:
    """Client of one session with an agent. `events` is the log as one follower received it."""

    def __init__(self, server: Server, session_id: str) -> None:
        self.server = server
        self.id = session_id
        self.path = f"/api/sessions/{session_id}"
        self.events: list[dict[str, Any]] = []
        self._events_added = asyncio.Condition()

    @classmethod
    async def begin(cls, server: Server, agent_id: str = "scripted") -> "RetryingClient":
        key = {"Idempotency-Key": str(uuid.uuid4())}
        body = {"locationPath": str(server.workspace), "agentId": agent_id}
        session = await retry_until_answered(
            lambda: server.call("POST", "/api/sessions", 201, json=body, headers=key)
        )
        return cls(server, session["id"])

    @asynccontextmanager
    async def following(self) -> AsyncIterator["RetryingClient"]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._follow())
            yield self
            task.cancel()

    async def until(self, condition: Callable[[list[dict[str, Any]]], object]) -> None:
        try:
            async with asyncio.timeout(SECONDS), self._events_added:
                await self._events_added.wait_for(lambda: condition(self.events))
        except TimeoutError:
            tail = [(each["seq"], each["type"], str(each["data"])[:100]) for each in self.events[-20:]]
            raise AssertionError(f"the condition did not become true; last events: {tail}") from None

    async def until_length(self, length: int) -> None:
        await self.until(lambda events: len(events) >= length)

    async def until_turns(self, ended: int) -> None:
        await self.until(lambda _: len(self.events_of_type("turn_end")) >= ended)

    async def until_answered(self, permission_id: str) -> None:
        await self.until(lambda _: permission_id not in self.open_permissions())

    async def prompt(self, text: str, prompt_id: str | None = None, **body: Any) -> dict[str, Any]:
        """Send a prompt. Its id makes repeated requests idempotent."""
        body |= {"text": text, "promptId": prompt_id or str(uuid.uuid4())}
        return await retry_until_answered(
            lambda: self.server.call("POST", f"{self.path}/prompt", 202, json=body)
        )

    async def answer(self, permission_id: str, option_id: str) -> int:
        """Answer a permission; return 409 if an earlier try had reached the server."""

        async def once() -> int:
            path = f"{self.path}/permissions/{permission_id}"
            answer = await self.server.http.post(path, json={"optionId": option_id})
            assert answer.status_code in (204, 409), answer.text
            return answer.status_code

        return await retry_until_answered(once)

    async def allow_all(self) -> None:
        """Allow every permission, until the task is cancelled. A `following` block must be active."""
        answered: set[str] = set()
        while True:
            await self.until(lambda _: self.open_permissions() - answered)
            for id in self.open_permissions() - answered:
                answered.add(id)
                await self.answer(id, "yes")

    def open_permissions(self) -> set[str]:
        """Return the ids of the permissions that wait for an answer."""
        permissions = [each["data"] for each in self.events_of_type("permission")]
        closed = {each["id"] for each in permissions if each["status"] != "pending"}
        return {each["id"] for each in permissions} - closed

    def events_of_type(self, type: str) -> list[dict[str, Any]]:
        return [each for each in self.events if each["type"] == type]

    def agent_text(self) -> str:
        return "".join(each["data"]["text"] for each in self.events_of_type("agent_message"))

    async def get(self, path: str = "") -> Any:
        return await retry_until_answered(lambda: self.server.call("GET", f"{self.path}{path}"))

    async def stored_events(self) -> list[dict[str, Any]]:
        """Return the whole log, read by REST."""
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
                        await self._add(json.loads(message))
            except CONNECTION_ERRORS:
                pass
            await asyncio.sleep(0.02)

    async def _add(self, message: dict[str, Any]) -> None:
        check_error(message)
        assert message["type"] in ("events", "heartbeat"), message
        for event in message.get("events", []):
            assert event["seq"] == len(self.events) + 1, f"got {event['seq']} after {len(self.events)}"
            self.events.append(event)
        async with self._events_added:
            self._events_added.notify_all()
