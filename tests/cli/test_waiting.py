"""`bullpen wait` and `--wait`: commands of an agent and other workers do not end the wait."""

import asyncio
import json

import pytest

from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient, define_scripted

FAILING = "[[terminal 'exit 4' release=false]]"


@pytest.fixture
async def talk(server: Server) -> SessionClient:
    await define_scripted(server)
    return await SessionClient.begin(server, title="work")


async def test_a_failed_command_of_an_agent_does_not_end_the_wait(
    bullpen: Bullpen, talk: SessionClient
) -> None:
    await talk.prompt(f"{FAILING} [[permission]]")
    await talk.open_permission()
    waiting = await bullpen("wait", "work", "--json")
    assert (waiting.code, json.loads(waiting.out)["outcome"]) == (3, "needs a person")
    assert [each["role"] for each in json.loads(waiting.out)["workers"]] == ["scripted"]
    assert (await bullpen("approve", "work")).code == 0
    assert await bullpen("wait", "work") == (0, "scripted: idle\n", "")


async def test_wait_can_wait_for_a_command_of_an_agent(bullpen: Bullpen, talk: SessionClient) -> None:
    await talk.run_turn(FAILING)
    _, command = (await talk.server.call("GET", f"{talk.path}/workers"))["workers"]
    done = await bullpen("wait", command["id"])
    assert done == (1, f"{command['role']}: ended with code 4\n", "")


async def test_wait_ends_when_an_agent_leaves_a_command_running(
    bullpen: Bullpen, talk: SessionClient
) -> None:
    await talk.prompt("""[[ask method=terminal/create params='{"command": "sleep", "args": ["1000"]}']]""")
    await talk.wait_for_event("turn_end")
    assert (await bullpen("wait", "work", "--timeout", "30")).code == 0


async def test_a_worker_that_runs_a_command_names_the_agent_as_its_owner(
    talk: SessionClient, server: Server
) -> None:
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


async def test_send_does_not_wait_for_an_agent_that_does_not_start(
    bullpen: Bullpen, talk: SessionClient, server: Server
) -> None:
    message_sent = server.home.parent / "message sent"
    await define_scripted(
        server, "broken", {"start": [{"do": "wait_for", "text": str(message_sent)}, "exit code=7"]}
    )
    body = {"type": "agent", "agentId": "broken", "role": "second"}
    await server.call("POST", f"{talk.path}/workers", 201, json=body)
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(bullpen("send", "work/second", "hello", "--wait", "--timeout", "60"))
        await talk.wait_for_event("queue_added")
        message_sent.touch()
        done = await sending
    assert (done.code, "code 7" in done.err) == (1, True), done
