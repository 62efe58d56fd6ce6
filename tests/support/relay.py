"""A client of `/ws/relay`: asks, and waits for what it is told."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection

from .server import Server

SECONDS = 60.0

Notice = dict[str, Any]


class RelayClient:
    """One socket with one live session; `notices` is all it was told."""

    def __init__(self, server: Server, ws: ClientConnection, session_id: str = "") -> None:
        self.server = server
        self.session_id = session_id
        self.notices: list[Notice] = []
        self._ws = ws

    async def ask(self, type: str, **fields: Any) -> None:
        if type != "session:create":
            fields = {"sessionId": self.session_id, **fields}
        await self._ws.send(json.dumps({"type": type, **fields}))

    async def told(self, type: str, **fields: Any) -> Notice:
        """The next notice of a type with these values; those before it are kept."""
        try:
            async with asyncio.timeout(SECONDS):
                while True:
                    notice: Notice = json.loads(await self._ws.recv())
                    self.notices.append(notice)
                    if notice["type"] == type and fields.items() <= notice.items():
                        return notice
        except TimeoutError:
            raise AssertionError(f"was not told {type} {fields}, but {self.notices[-20:]}") from None

    async def refused(self, type: str, **fields: Any) -> Notice:
        """Asks, and returns why it is not done."""
        id = str(uuid.uuid4())
        await self.ask(type, id=id, **fields)
        return await self.told("error", id=id)

    async def create(self) -> Notice:
        await self.ask("session:create")
        created = await self.told("session:created")
        self.session_id = created["sessionId"]
        return created

    def workspace(self, role: str) -> str:
        return str(self.server.workspace / role)

    async def spawn(self, role: str, **fields: Any) -> Notice:
        """An agent that is ready."""
        fields = {"workspace": self.workspace(role), "agentId": "scripted", **fields}
        await self.ask("agent:spawn", role=role, **fields)
        return await self.told("agent:ready", role=role)

    async def spawned(self, *roles: str) -> None:
        for role in roles:
            await self.spawn(role)

    async def say(self, role: str, content: str, answer: str) -> None:
        """A message, and its answer in however many pieces."""
        await self.ask("agent:message", role=role, content=content)
        said = ""
        while answer not in said:
            said += (await self.told("agent:response", role=role))["content"]

    async def agents(self) -> dict[str, Notice]:
        """What the list says, by role."""
        await self.ask("agent:list")
        return {agent["role"]: agent for agent in (await self.told("agent:list"))["agents"]}

    async def states(self) -> dict[str, str]:
        return {role: agent["state"] for role, agent in (await self.agents()).items()}

    async def until_state(self, role: str, state: str) -> None:
        async with asyncio.timeout(SECONDS):
            while (await self.states()).get(role) != state:
                await asyncio.sleep(0.02)

    async def terminate(self, role: str) -> Notice:
        await self.ask("agent:terminate", role=role)
        return await self.told("agent:terminated", role=role)

    async def end(self) -> Notice:
        await self.ask("session:terminate")
        return await self.told("session:terminated", sessionId=self.session_id)

    async def session(self) -> dict[str, Any]:
        """The same session as REST sees it."""
        session: dict[str, Any] = await self.server.call("GET", f"/api/sessions/{self.session_id}")
        return session

    async def pids(self) -> dict[str, int]:
        workers = (await self.session())["workers"]
        return {worker["role"]: worker["pid"] for worker in workers}


@asynccontextmanager
async def relay(server: Server, session_id: str = "", **kwargs: Any) -> AsyncIterator[RelayClient]:
    """A client on a socket of its own; without a session of another it makes one."""
    async with server.socket("/ws/relay", **kwargs) as ws:
        client = RelayClient(server, ws, session_id)
        if not session_id:
            await client.create()
        yield client
