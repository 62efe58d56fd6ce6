"""A client of `/ws/relay`: sends requests and waits for notices."""

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
    """One socket with one session. `notices` has every notice that the socket received."""

    def __init__(self, server: Server, ws: ClientConnection, session_id: str = "") -> None:
        self.server = server
        self.session_id = session_id
        self.notices: list[Notice] = []
        self._ws = ws

    async def send(self, type: str, **fields: Any) -> None:
        if type != "session:create":
            fields = {"sessionId": self.session_id, **fields}
        await self._ws.send(json.dumps({"type": type, **fields}))

    async def wait_for_notice(self, type: str, **fields: Any) -> Notice:
        """Wait for the next notice of a type with these fields."""
        try:
            async with asyncio.timeout(SECONDS):
                while True:
                    notice: Notice = json.loads(await self._ws.recv())
                    self.notices.append(notice)
                    if notice["type"] == type and fields.items() <= notice.items():
                        return notice
        except TimeoutError:
            raise AssertionError(f"no notice {type} {fields}; the last were {self.notices[-20:]}") from None

    async def expect_error(self, type: str, **fields: Any) -> Notice:
        """Send a request that the server refuses; return its error notice."""
        id = str(uuid.uuid4())
        await self.send(type, id=id, **fields)
        return await self.wait_for_notice("error", id=id)

    async def closed(self) -> int:
        """Wait until the server closes the socket; return its code."""
        async with asyncio.timeout(SECONDS):
            await self._ws.wait_closed()
        assert self._ws.close_code is not None
        return self._ws.close_code

    async def create(self) -> Notice:
        await self.send("session:create")
        created = await self.wait_for_notice("session:created")
        self.session_id = created["sessionId"]
        return created

    def workspace(self, role: str) -> str:
        return str(self.server.workspace / role)

    async def spawn(self, role: str, **fields: Any) -> Notice:
        """Spawn an agent and wait until it is ready."""
        fields = {"workspace": self.workspace(role), "agentId": "scripted", **fields}
        await self.send("agent:spawn", role=role, **fields)
        return await self.wait_for_notice("agent:ready", role=role)

    async def spawn_all(self, *roles: str) -> None:
        for role in roles:
            await self.spawn(role)

    async def exchange(self, role: str, content: str, answer: str) -> None:
        """Send a message to an agent and wait until its responses contain the answer."""
        await self.send("agent:message", role=role, content=content)
        received = ""
        while answer not in received:
            received += (await self.wait_for_notice("agent:response", role=role))["content"]

    async def agents(self) -> dict[str, Notice]:
        """Return the list of agents, by role."""
        await self.send("agent:list")
        return {agent["role"]: agent for agent in (await self.wait_for_notice("agent:list"))["agents"]}

    async def states(self) -> dict[str, str]:
        return {role: agent["state"] for role, agent in (await self.agents()).items()}

    async def until_state(self, role: str, state: str) -> None:
        async with asyncio.timeout(SECONDS):
            while (await self.states()).get(role) != state:
                await asyncio.sleep(0.02)

    async def terminate(self, role: str) -> Notice:
        await self.send("agent:terminate", role=role)
        return await self.wait_for_notice("agent:terminated", role=role)

    async def terminate_session(self) -> Notice:
        await self.send("session:terminate")
        return await self.wait_for_notice("session:terminated", sessionId=self.session_id)

    async def session(self) -> dict[str, Any]:
        """Return the session as REST shows it."""
        session: dict[str, Any] = await self.server.call("GET", f"/api/sessions/{self.session_id}")
        return session

    async def pids(self) -> dict[str, int]:
        workers = (await self.session())["workers"]
        return {worker["role"]: worker["pid"] for worker in workers}


@asynccontextmanager
async def open_relay(server: Server, session_id: str = "", **kwargs: Any) -> AsyncIterator[RelayClient]:
    """Connect a client with a new socket. Create a session unless the id of one is given."""
    async with server.socket("/ws/relay", **kwargs) as ws:
        client = RelayClient(server, ws, session_id)
        if not session_id:
            await client.create()
        yield client
