"""Each agent has one record, and the `status` of the record follows the state of the agent."""

import asyncio
from collections.abc import AsyncIterator

import psutil
import pytest
import pytest_asyncio

from support.server import Server
from support.session_client import SessionClient, define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECONDS = 30.0


@pytest_asyncio.fixture(loop_scope="session")
async def conversation(shared_server: Server) -> AsyncIterator[SessionClient]:
    await define_scripted(shared_server)
    conversation = SessionClient(shared_server, await shared_server.new_session(title="agent records"))
    yield conversation
    await shared_server.call("DELETE", conversation.path)


async def new_agent(conversation: SessionClient, role: str) -> str:
    body = {"type": "agent", "agentId": "scripted", "role": role}
    worker_id: str = (await conversation.server.call("POST", f"{conversation.path}/workers", 201, json=body))[
        "id"
    ]
    return worker_id


async def wait_for_status(conversation: SessionClient, worker_id: str, status: str) -> None:
    """Wait until the record of a worker has this status."""
    async with asyncio.timeout(SECONDS):
        while (await conversation.server.call("GET", f"{conversation.path}/workers/{worker_id}"))[
            "status"
        ] != status:
            await asyncio.sleep(0.02)


async def test_each_agent_has_one_record_with_its_process_and_its_output(
    conversation: SessionClient,
) -> None:
    ids = {role: await new_agent(conversation, role) for role in ("first", "second")}
    for role, worker_id in ids.items():
        await wait_for_status(conversation, worker_id, "connected")
        prompted = await conversation.prompt(f"[[chunk I am the {role}]]", role=role)
        start = await conversation.wait_for_event("turn_start", promptId=prompted["promptId"])
        await conversation.wait_for_event("turn_end", after=start["seq"])
    records = {
        each["role"]: each
        for each in (await conversation.server.call("GET", f"{conversation.path}/workers"))["workers"]
    }
    assert {role: record["id"] for role, record in records.items()} == ids
    assert len({record["pid"] for record in records.values()}) == len(ids)
    assert all(psutil.pid_exists(record["pid"]) for record in records.values())
    answers = [each for each in await conversation.events() if each["type"] == "agent_message"]
    assert {each["workerId"]: each["data"]["text"] for each in answers} == {
        worker_id: f"I am the {role}" for role, worker_id in ids.items()
    }


async def test_the_status_of_an_agent_follows_its_state(conversation: SessionClient) -> None:
    listed = await conversation.server.call("GET", f"{conversation.path}/workers")
    assert listed["workers"] == []
    await define_scripted(conversation.server, "slow", {"on": {"initialize": [{"do": "silent"}]}})
    body = {"type": "agent", "agentId": "slow", "role": "slow"}
    slow = await conversation.server.call("POST", f"{conversation.path}/workers", 201, json=body)
    await wait_for_status(conversation, slow["id"], "starting")
    agent = await new_agent(conversation, "agent")
    await wait_for_status(conversation, agent, "connected")
    await conversation.prompt("[[permission]]", role="agent")
    await conversation.open_permission()
    await wait_for_status(conversation, agent, "running")
    await conversation.server.call("DELETE", f"{conversation.path}/workers/{agent}")
    await wait_for_status(conversation, agent, "exited")
    other = await new_agent(conversation, "other")
    await wait_for_status(conversation, other, "connected")
    await conversation.prompt("[[crash]]", role="other")
    await wait_for_status(conversation, other, "error")
