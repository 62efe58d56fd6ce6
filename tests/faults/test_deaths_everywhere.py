"""Keeper, agent, both, or server and keeper die at each row of the table of deaths (R-05)."""

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


async def in_a_handshake(talker: RetryingClient) -> None:
    await talker.until(lambda _: talker.events_of_type("request_sent"))


async def when_idle(talker: RetryingClient) -> None:
    await talker.until(lambda _: talker.events_of_type("worker_ready"))


async def with_a_prompt_stored(talker: RetryingClient) -> None:
    await when_idle(talker)
    await talker.prompt(PROMPT)


async def with_output_being_read(talker: RetryingClient) -> None:
    await with_a_prompt_stored(talker)
    await talker.until(lambda _: talker.agent_text())


async def with_a_question_open(talker: RetryingClient) -> None:
    await with_a_prompt_stored(talker)
    await talker.until(lambda _: talker.open_permissions())


MOMENTS: list[Callable[[RetryingClient], Awaitable[None]]] = [
    in_a_handshake,
    when_idle,
    with_a_prompt_stored,
    with_output_being_read,
    with_a_question_open,
]
VICTIMS = ["agent", "keeper", "agent and keeper", "server and keeper", "server and agent"]


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)
async def test_whoever_dies_whenever_the_session_stays_and_can_be_gone_on_with(
    server: Server, workspace: Path, moment: Callable[[RetryingClient], Awaitable[None]]
) -> None:
    for number in range(TIMES):
        for victim in VICTIMS:
            name = f"{victim.replace(' ', '-')}-{number}"
            journal = define_scripted(workspace, agent_id=name)
            talker = await _begin(server, name)
            async with talker.following():
                await moment(talker)
                await _kill(server, victim, _pid_of(journal))
                await _check(talker, journal)


async def _begin(server: Server, agent_id: str) -> RetryingClient:
    """With an agent that joined later: its failure to begin does not end the session."""
    session = await server.new_session()
    talker = RetryingClient(server, session["id"])
    body = {"type": "agent", "agentId": agent_id}
    await server.call("POST", f"{talker.path}/workers", 201, json=body)
    return talker


def _pid_of(journal: Path) -> int | None:
    """An agent that has only been spawned may not have come to its journal yet."""
    marked = [p.pid for p in psutil.process_iter() if _says(p, str(journal))]
    return marked[0] if marked else None


def _says(process: psutil.Process, word: str) -> bool:
    with suppress(psutil.Error):
        return word in process.cmdline()
    return False


async def _kill(server: Server, victim: str, pid: int | None) -> None:
    keepers = [p.pid for p in psutil.process_iter() if _says(p, str(server.home)) and p.pid != server.pid]
    assert len(keepers) == 1
    if "server" in victim:
        await server.kill()
    for doomed in ([pid] if "agent" in victim else []) + (keepers if "keeper" in victim else []):
        if doomed is not None:
            with suppress(ProcessLookupError):
                os.kill(doomed, signal.SIGKILL)
    if "server" in victim:
        await server.start()


async def _check(talker: RetryingClient, journal: Path) -> None:
    """One clear state, nothing twice, and the role goes on."""
    await talker.until(lambda _: talker.events_of_type("worker_failed"))
    worker = (await talker.get("/workers"))["workers"][0]
    assert (await talker.get())["status"] == "active"
    assert len(talker.events_of_type("turn_start")) == len(talker.events_of_type("turn_end"))
    assert talker.open_permissions() == set()
    await talker.server.call("POST", f"{talker.path}/workers/{worker['id']}/restart")
    await talker.until(lambda _: talker.events[-1]["type"] == "worker_activity" and _ready_again(talker))
    await talker.prompt("[[chunk again]]")
    await talker.until(lambda _: talker.agent_text().endswith("again"))
    log = await talker.stored_events()
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    said = prompts_in(journal)
    assert said.count(PROMPT) <= 1
    assert said.count("[[chunk again]]") == 1
    await talker.server.call("DELETE", talker.path)


def _ready_again(talker: RetryingClient) -> bool:
    failed = talker.events_of_type("worker_failed")[-1]["seq"]
    return any(event["seq"] > failed for event in talker.events_of_type("worker_ready"))
