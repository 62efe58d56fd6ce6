"""The disk fails at any write of a handshake and a turn, once or for a while; nothing is lost (R-03)."""

import asyncio
import os
import random
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.retrying_client import RetryingClient, define_scripted
from support.scripted_agent.journal import message_of, prompts_in, read_journal
from support.server import Server
from support.strace import failing_at

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
POINTS = list(range(1, 121)) if FULL else random.sample(range(1, 60), 4)
SECONDS = 60.0
TEXT = "[[stream n=5]] [[write path=file content=w]] [[permission title=x]] [[tool title=y]] [[chunk end]]"


async def order(server: Server, method: str, path: str, **body: Any) -> httpx.Response:
    """Sent again while the disk takes nothing."""
    key = {"Idempotency-Key": str(uuid.uuid4())}
    async with asyncio.timeout(SECONDS):
        while True:
            answer = await server.http.request(method, path, json=body or None, headers=key)
            if answer.status_code != 507:
                assert answer.is_success, answer.text
                return answer
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
async def test_r03_a_disk_that_fails_once_at_any_write_of_a_turn(
    server: Server, workspace: Path, error: str
) -> None:
    hits = 0
    for number in POINTS:
        journal = define_scripted(workspace, agent_id=f"agent-{number}")
        async with failing_at(server.pid, str(number), error) as faults:
            talker = await _whole_turn(server, f"agent-{number}")
            hits += faults.count()
        await _check(talker, journal)
    assert hits, "no write failed: the test shows nothing"


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
async def test_r03_a_disk_that_fails_for_a_while_in_the_middle_of_a_turn(
    server: Server, workspace: Path, error: str
) -> None:
    hits = 0
    for number in POINTS[::2]:
        journal = define_scripted(workspace, agent_id=f"agent-{number}")
        async with asyncio.TaskGroup() as tasks:
            async with failing_at(server.pid, f"{number}+", error) as faults:
                turn = tasks.create_task(_whole_turn(server, f"agent-{number}"))
                await _until_refused(server, turn)
                hits += faults.count()
            talker = await turn
        await _check(talker, journal)
    assert hits, "no write failed: the test shows nothing"


async def _until_refused(server: Server, turn: asyncio.Task[RetryingClient]) -> None:
    """New orders are refused, reading goes on; unless the turn needed fewer writes than that."""
    async with asyncio.timeout(SECONDS):
        while not turn.done():
            body = {"locationPath": str(server.workspace)}
            answer = await server.http.post("/api/sessions", json=body)
            if answer.status_code == 507:
                await server.call("GET", "/api/sessions")
                return
            await server.http.delete(f"/api/sessions/{answer.json()['id']}")


async def _whole_turn(server: Server, agent_id: str) -> RetryingClient:
    """A session with an agent is made, prompted and allowed."""
    where = str(server.workspace)
    session = (await order(server, "POST", "/api/sessions", locationPath=where, agentId=agent_id)).json()
    talker = RetryingClient(server, session["id"])
    async with talker.following():
        await order(server, "POST", f"{talker.path}/prompt", text=TEXT, promptId=agent_id)
        await talker.until(lambda _: talker.open_permissions())
        (permission,) = talker.open_permissions()
        await order(server, "POST", f"{talker.path}/permissions/{permission}", optionId="yes")
        await talker.until(lambda _: talker.events_of_type("turn_end"))
    return talker


async def _check(talker: RetryingClient, journal: Path) -> None:
    """All that was acknowledged is there, once; the agent was told everything once."""
    assert (await talker.stored_events())[: len(talker.events)] == talker.events
    assert prompts_in(journal) == [TEXT]
    assert talker.agent_text() == "<0><1><2><3><4>end"
    for once in ("worker_ready", "agent_session", "user_prompt", "file_write", "turn_end"):
        assert len(talker.events_of_type(once)) == 1, once
    heard = [message_of(record).get("method") for record in read_journal(journal) if record["dir"] == "in"]
    assert heard == ["initialize", "session/new", "session/prompt", None, None]
    await order(talker.server, "DELETE", talker.path)
