"""What ends a wait, and what does not: the commands an agent runs, and agents nobody waits for."""

import asyncio
import json
from pathlib import Path

import pytest

from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient, define_scripted

FAILING = "[[terminal 'exit 4' release=false]]"


@pytest.fixture
async def talk(server: Server) -> SessionClient:
    await define_scripted(server)
    return await SessionClient.begin(server, title="work")


async def test_a_command_of_an_agent_that_failed_ends_no_wait(bullpen: Bullpen, talk: SessionClient) -> None:
    await talk.prompt(f"{FAILING} [[permission]]")
    await talk.open_permission()
    waiting = await bullpen("wait", "work", "--json")
    assert (waiting.code, json.loads(waiting.out)["outcome"]) == (3, "needs a person")
    assert [each["role"] for each in json.loads(waiting.out)["workers"]] == ["scripted"]
    assert (await bullpen("approve", "work")).code == 0
    assert await bullpen("wait", "work") == (0, "scripted: idle\n", "")


async def test_a_command_of_an_agent_can_be_waited_for_by_its_name(
    bullpen: Bullpen, talk: SessionClient
) -> None:
    await talk.run_turn(FAILING)
    _, command = (await talk.server.call("GET", f"{talk.path}/workers"))["workers"]
    told = await bullpen("wait", command["id"])
    assert told == (1, f"{command['role']}: ended with code 4\n", "")


async def test_an_agent_that_leaves_a_command_running_is_done(bullpen: Bullpen, talk: SessionClient) -> None:
    await talk.prompt("""[[ask method=terminal/create params='{"command": "sleep", "args": ["1000"]}']]""")
    await talk.wait_for_event("turn_end")
    assert (await bullpen("wait", "work", "--timeout", "30")).code == 0


async def test_a_worker_tells_whose_command_it_runs(talk: SessionClient, server: Server) -> None:
    await talk.run_turn(FAILING)
    agent, command = (await server.call("GET", f"{talk.path}/workers"))["workers"]
    assert (agent["owner"], command["owner"]) == (None, agent["id"])
    [listed] = (await server.call("GET", "/api/sessions"))["sessions"]
    assert [each["owner"] for each in listed["workers"]] == [None, agent["id"]]
    shell = await server.new_terminal(talk.id)
    assert shell["owner"] is None


async def test_a_queued_prompt_waits_on_when_another_worker_fails(
    bullpen: Bullpen, talk: SessionClient, server: Server
) -> None:
    await define_scripted(server, "broken", {"start": ["exit code=7"]})
    await talk.prompt("[[permission]]")
    await talk.open_permission()
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(bullpen("send", "work", "[[chunk later]]", "--wait"))
        await talk.wait_for_event("queue_added")
        await server.call("POST", f"{talk.path}/workers", 201, json={"type": "agent", "agentId": "broken"})
        await talk.wait_for_event("worker_failed")
        assert (await bullpen("approve", "work")).code == 0
        assert await sending == (0, "later\n", "")


async def test_a_prompt_whose_agent_does_not_start_is_not_waited_for(
    bullpen: Bullpen, talk: SessionClient, server: Server, tmp_path: Path
) -> None:
    was_sent = tmp_path / "was sent"
    await define_scripted(
        server, "broken", {"start": [{"do": "wait_for", "text": str(was_sent)}, "exit code=7"]}
    )
    body = {"type": "agent", "agentId": "broken", "role": "second"}
    await server.call("POST", f"{talk.path}/workers", 201, json=body)
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(bullpen("send", "work/second", "hello", "--wait", "--timeout", "60"))
        await talk.wait_for_event("queue_added")
        was_sent.touch()
        told = await sending
    assert (told.code, "code 7" in told.err) == (1, True), told
