"""The keeper, the agent, both, or one of them and the server are killed at each stage of a conversation."""

import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from support.retrying_client import RetryingClient, define_scripted
from support.scripted_agent.journal import prompts_in
from support.server import Server

TIMES = 50 if os.environ.get("BULLPEN_FAULTS") == "full" else 1

PROMPT = "[[chunk begun]] [[permission title=x]] [[sleep 1000]]"


async def in_a_handshake(client: RetryingClient) -> None:
    await client.until(lambda _: client.events_of_type("request_sent"))


async def when_idle(client: RetryingClient) -> None:
    await client.until(lambda _: client.events_of_type("worker_ready"))


async def with_a_prompt_stored(client: RetryingClient) -> None:
    await when_idle(client)
    await client.prompt(PROMPT)


async def with_output_being_read(client: RetryingClient) -> None:
    await with_a_prompt_stored(client)
    await client.until(lambda _: client.agent_text())


async def with_a_question_open(client: RetryingClient) -> None:
    await with_a_prompt_stored(client)
    await client.until(lambda _: client.open_permissions())


STAGES: list[Callable[[RetryingClient], Awaitable[None]]] = [
    in_a_handshake,
    when_idle,
    with_a_prompt_stored,
    with_output_being_read,
    with_a_question_open,
]
VICTIMS = ["agent", "keeper", "agent and keeper", "server and keeper", "server and agent"]


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
async def test_a_session_continues_after_its_agent_keeper_or_server_was_killed_at_any_stage(
    server: Server, workspace: Path, stage: Callable[[RetryingClient], Awaitable[None]]
) -> None:
    for number in range(TIMES):
        for victim in VICTIMS:
            name = f"{victim.replace(' ', '-')}-{number}"
            journal = define_scripted(workspace, agent_id=name)
            client = await _begin(server, name)
            async with client.following():
                await stage(client)
                await _kill(server, victim, _pid_of(journal))
                await _check(client, journal)


async def _begin(server: Server, agent_id: str) -> RetryingClient:
    """Create a session and add an agent. An agent that is added later may fail without ending the session."""
    session = await server.new_session()
    client = RetryingClient(server, session["id"])
    body = {"type": "agent", "agentId": agent_id}
    await server.call("POST", f"{client.path}/workers", 201, json=body)
    return client


def _pid_of(journal: Path) -> int | None:
    """Find the agent by its command line, since an agent that has just started has no journal yet."""
    pids = [p.pid for p in psutil.process_iter() if _has_argument(p, str(journal))]
    return pids[-1] if pids else None  # the program, or the sandbox that is about to start it


def _has_argument(process: psutil.Process, word: str) -> bool:
    with suppress(psutil.Error):
        return word in process.cmdline()
    return False


def _parent_of(process: psutil.Process) -> int | None:
    with suppress(psutil.Error):
        return int(process.ppid())
    return None


async def _kill(server: Server, victim: str, pid: int | None) -> None:
    ours = [p for p in psutil.process_iter() if _has_argument(p, str(server.home)) and p.name() != "bwrap"]
    pids = {p.pid for p in ours}
    # A child of the keeper has the arguments of the keeper until it executes its program.
    keepers = [p.pid for p in ours if p.pid != server.pid and _parent_of(p) not in pids]
    assert len(keepers) == 1
    if "server" in victim:
        await server.kill()
    for pid_to_kill in ([pid] if "agent" in victim else []) + (keepers if "keeper" in victim else []):
        if pid_to_kill is not None:
            with suppress(ProcessLookupError):
                os.kill(pid_to_kill, signal.SIGKILL)
    if "server" in victim:
        await server.start()


async def _check(client: RetryingClient, journal: Path) -> None:
    """Check that the worker failed, that no prompt was sent twice, and that a restarted agent works."""
    await client.until(lambda _: client.events_of_type("worker_failed"))
    worker = (await client.get("/workers"))["workers"][0]
    assert (await client.get())["status"] == "active"
    assert len(client.events_of_type("turn_start")) == len(client.events_of_type("turn_end"))
    assert client.open_permissions() == set()
    await client.server.call("POST", f"{client.path}/workers/{worker['id']}/restart")
    await client.until(lambda _: client.events[-1]["type"] == "worker_activity" and _ready_again(client))
    await client.prompt("[[chunk again]]")
    await client.until(lambda _: client.agent_text().endswith("again"))
    log = await client.stored_events()
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    prompts = prompts_in(journal)
    assert prompts.count(PROMPT) <= 1
    assert prompts.count("[[chunk again]]") == 1
    await client.server.call("DELETE", client.path)


def _ready_again(client: RetryingClient) -> bool:
    failed = client.events_of_type("worker_failed")[-1]["seq"]
    return any(event["seq"] > failed for event in client.events_of_type("worker_ready"))
