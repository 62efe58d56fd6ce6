"""The server is killed while it restarts a crashed agent: the next server restarts the agent exactly once."""

import asyncio
import os
import random
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from support.retrying_client import RetryingClient, define_scripted
from support.server import Server
from support.strace import killed_at

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
POINTS = range(1, 41) if FULL else sorted(random.sample(range(1, 13), 5))
SECONDS = 60.0


@pytest.mark.timeout(600)
async def test_a_crashed_agent_is_restarted_once_when_the_server_is_killed_meanwhile(
    server: Server, workspace: Path
) -> None:
    define_scripted(workspace, agent_id="phoenix", restart=True)
    deaths = [await _crash_once(server, number) for number in POINTS]
    assert any(deaths), "no kill happened, so nothing was tested"


async def _crash_once(server: Server, number: int) -> bool:
    """Kill the agent, and the server at its n-th system call; return whether the server was killed."""
    client = await RetryingClient.begin(server, "phoenix")
    async with client.following(), AsyncExitStack() as stack:
        await client.until(lambda _: client.events_of_type("worker_ready"))
        worker = (await client.get("/workers"))["workers"][0]
        await stack.enter_async_context(killed_at(server.pid, number))
        os.kill(worker["pid"], signal.SIGKILL)
        died = await _server_dies(server, client)
        await client.until(lambda _: len(client.events_of_type("worker_ready")) == 2)
        await client.prompt("[[chunk back]]")
        await client.until(lambda _: client.agent_text() == "back")
        assert [each["automatic"] for each in _data_of(client, "worker_spawning")] == [False, True]
        assert [each["again"] for each in _data_of(client, "worker_failed")] == [True]
        assert (await client.get("/workers"))["workers"][0]["run"] == 2
    await server.call("DELETE", client.path)
    return died


async def _server_dies(server: Server, client: RetryingClient) -> bool:
    """Wait until the agent is ready again or the server died; return whether it died. It runs afterwards."""
    process = server.process
    assert process is not None
    async with asyncio.timeout(SECONDS):
        while process.poll() is None and len(client.events_of_type("worker_ready")) < 2:
            await asyncio.sleep(0.02)
    if process.poll() is None:
        return False
    await server.start()
    return True


def _data_of(client: RetryingClient, type: str) -> list[dict[str, Any]]:
    return [event["data"] for event in client.events_of_type(type)]
