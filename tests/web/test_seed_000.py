"""Seed 000 by number, as far as the server shows it: one record for each agent, and a word for its state."""

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
async def talk(house: Server) -> AsyncIterator[SessionClient]:
    await define_scripted(house)
    talk = SessionClient(house, await house.new_session(title="seed 000"))
    yield talk
    await house.call("DELETE", talk.path)


async def new_agent(talk: SessionClient, role: str) -> str:
    body = {"type": "agent", "agentId": "scripted", "role": role}
    worker_id: str = (await talk.server.call("POST", f"{talk.path}/workers", 201, json=body))["id"]
    return worker_id


async def reads(talk: SessionClient, worker_id: str, word: str) -> None:
    async with asyncio.timeout(SECONDS):
        while (await talk.server.call("GET", f"{talk.path}/workers/{worker_id}"))["status"] != word:
            await asyncio.sleep(0.02)


async def test_r1_each_agent_has_one_record_with_its_process_its_connection_and_its_output(
    talk: SessionClient,
) -> None:
    ids = {role: await new_agent(talk, role) for role in ("first", "second")}
    for role, worker_id in ids.items():
        await reads(talk, worker_id, "connected")
        prompted = await talk.prompt(f"[[chunk I am the {role}]]", role=role)
        start = await talk.wait_for_event("turn_start", promptId=prompted["promptId"])
        await talk.wait_for_event("turn_end", after=start["seq"])
    records = {
        each["role"]: each for each in (await talk.server.call("GET", f"{talk.path}/workers"))["workers"]
    }
    assert {role: record["id"] for role, record in records.items()} == ids
    assert len({record["pid"] for record in records.values()}) == len(ids)
    assert all(psutil.pid_exists(record["pid"]) for record in records.values())
    said = [each for each in await talk.events() if each["type"] == "agent_message"]
    assert {each["workerId"]: each["data"]["text"] for each in said} == {
        worker_id: f"I am the {role}" for role, worker_id in ids.items()
    }


async def test_r3_the_six_words_of_an_agent_are_readable(talk: SessionClient) -> None:
    assert (await talk.server.call("GET", f"{talk.path}/workers"))["workers"] == []  # idle: nobody works
    await define_scripted(talk.server, "slow", {"on": {"initialize": [{"do": "silent"}]}})
    body = {"type": "agent", "agentId": "slow", "role": "slow"}
    slow = await talk.server.call("POST", f"{talk.path}/workers", 201, json=body)
    await reads(talk, slow["id"], "starting")
    agent = await new_agent(talk, "agent")
    await reads(talk, agent, "connected")
    await talk.prompt("[[permission]]", role="agent")
    await talk.open_permission()
    await reads(talk, agent, "running")
    await talk.server.call("DELETE", f"{talk.path}/workers/{agent}")
    await reads(talk, agent, "exited")
    other = await new_agent(talk, "other")
    await reads(talk, other, "connected")
    await talk.prompt("[[crash]]", role="other")
    await reads(talk, other, "error")
