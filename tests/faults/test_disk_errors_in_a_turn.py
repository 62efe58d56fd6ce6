"""Writes to the disk fail during a handshake and a turn, once or for some time; nothing is lost."""

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
PROMPT = "[[stream n=5]] [[write path=file content=w]] [[permission title=x]] [[tool title=y]] [[chunk end]]"


async def send_order(server: Server, method: str, path: str, **body: Any) -> httpx.Response:
    """Send the order, and repeat it while the server answers that the disk is full (507)."""
    key = {"Idempotency-Key": str(uuid.uuid4())}
    async with asyncio.timeout(SECONDS):
        while True:
            answer = await server.http.request(method, path, json=body or None, headers=key)
            if answer.status_code != 507:
                assert answer.is_success, answer.text
                return answer
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
async def test_a_disk_that_fails_once_at_any_write_of_a_turn_loses_nothing(
    server: Server, workspace: Path, error: str
) -> None:
    failed_writes = 0
    for number in POINTS:
        journal = define_scripted(workspace, agent_id=f"agent-{number}")
        async with failing_at(server.pid, str(number), error) as faults:
            client = await _run_turn(server, f"agent-{number}")
            failed_writes += faults.count()
        await _check(client, journal)
    assert failed_writes, "no write failed, so nothing was tested"


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
async def test_a_disk_that_fails_for_some_time_during_a_turn_loses_nothing(
    server: Server, workspace: Path, error: str
) -> None:
    failed_writes = 0
    for number in POINTS[::2]:
        journal = define_scripted(workspace, agent_id=f"agent-{number}")
        async with asyncio.TaskGroup() as tasks:
            async with failing_at(server.pid, f"{number}+", error) as faults:
                turn = tasks.create_task(_run_turn(server, f"agent-{number}"))
                await _until_refused(server, turn)
                failed_writes += faults.count()
            client = await turn
        await _check(client, journal)
    assert failed_writes, "no write failed, so nothing was tested"


async def _until_refused(server: Server, turn: asyncio.Task[RetryingClient]) -> None:
    """Wait until a new order is refused, and check that reads still work.

    Return early if the turn ended before any order was refused.
    """
    async with asyncio.timeout(SECONDS):
        while not turn.done():
            body = {"locationPath": str(server.workspace)}
            answer = await server.http.post("/api/sessions", json=body)
            if answer.status_code == 507:
                await server.call("GET", "/api/sessions")
                return
            await server.http.delete(f"/api/sessions/{answer.json()['id']}")


async def _run_turn(server: Server, agent_id: str) -> RetryingClient:
    """Create a session with an agent, prompt it, and allow what it asks for."""
    workspace = str(server.workspace)
    session = (
        await send_order(server, "POST", "/api/sessions", locationPath=workspace, agentId=agent_id)
    ).json()
    client = RetryingClient(server, session["id"])
    async with client.following():
        await send_order(server, "POST", f"{client.path}/prompt", text=PROMPT, promptId=agent_id)
        await client.until(lambda _: client.open_permissions())
        (permission,) = client.open_permissions()
        await send_order(server, "POST", f"{client.path}/permissions/{permission}", optionId="yes")
        await client.until(lambda _: client.events_of_type("turn_end"))
    return client


async def _check(client: RetryingClient, journal: Path) -> None:
    """Check that every acknowledged event is stored once and that the agent received each message once."""
    assert (await client.stored_events())[: len(client.events)] == client.events
    assert prompts_in(journal) == [PROMPT]
    assert client.agent_text() == "<0><1><2><3><4>end"
    for event_type in ("worker_ready", "agent_session", "user_prompt", "file_write", "turn_end"):
        assert len(client.events_of_type(event_type)) == 1, event_type
    methods = [message_of(record).get("method") for record in read_journal(journal) if record["dir"] == "in"]
    assert methods == ["initialize", "session/new", "session/prompt", None, None]
    await send_order(client.server, "DELETE", client.path)
