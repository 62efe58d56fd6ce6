"""The server is killed while it starts a crashed agent again: the next one does it, once."""

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
async def test_a_crashed_agent_is_started_again_once_whatever_the_server_died_of_meanwhile(
    server: Server, workspace: Path
) -> None:
    define_scripted(workspace, agent_id="phoenix", restart=True)
    deaths = [await _crash_once(server, number) for number in POINTS]
    assert any(deaths), "no kill hit: the test shows nothing"


async def _crash_once(server: Server, number: int) -> bool:
    """Whether the server died before the agent was there again."""
    talker = await RetryingClient.begin(server, "phoenix")
    async with talker.following(), AsyncExitStack() as stack:
        await talker.until(lambda _: talker.events_of_type("worker_ready"))
        worker = (await talker.get("/workers"))["workers"][0]
        await stack.enter_async_context(killed_at(server.pid, number))
        os.kill(worker["pid"], signal.SIGKILL)
        died = await _dies(server, talker)
        await talker.until(lambda _: len(talker.events_of_type("worker_ready")) == 2)
        await talker.prompt("[[chunk back]]")
        await talker.until(lambda _: talker.agent_text() == "back")
        assert [each["automatic"] for each in _told(talker, "worker_spawning")] == [False, True]
        assert [each["again"] for each in _told(talker, "worker_failed")] == [True]
        assert (await talker.get("/workers"))["workers"][0]["run"] == 2
    await server.call("DELETE", talker.path)
    return died


async def _dies(server: Server, talker: RetryingClient) -> bool:
    """Waits for the agent, or the death of the server; it runs afterwards."""
    process = server.process
    assert process is not None
    async with asyncio.timeout(SECONDS):
        while process.poll() is None and len(talker.events_of_type("worker_ready")) < 2:
            await asyncio.sleep(0.02)
    if process.poll() is None:
        return False
    await server.start()
    return True


def _told(talker: RetryingClient, type: str) -> list[dict[str, Any]]:
    return [event["data"] for event in talker.events_of_type(type)]
