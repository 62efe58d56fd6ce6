"""Agents in one session over `/ws/relay`: usual use, several agents, failures and edge cases."""

import asyncio
from collections.abc import AsyncIterator

import psutil
import pytest
import pytest_asyncio

from support.relay_client import RelayClient, open_relay
from support.server import SECONDS, Server
from support.session_client import define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

SLOW = {"on": {"initialize": [{"do": "sleep", "text": "600"}]}}  # its handshake does not end


@pytest_asyncio.fixture(loop_scope="session")
async def client(shared_server: Server) -> AsyncIterator[RelayClient]:
    await define_scripted(shared_server)
    async with open_relay(shared_server) as connected:
        yield connected
        if (await connected.session())["status"] == "active":
            await connected.terminate_session()


# Usual use


async def test_create_session_verify_active_state(client: RelayClient) -> None:
    created = client.notices[0]
    assert set(created) == {"type", "sessionId", "timestamp"}
    session = await client.session()
    assert (session["status"], session["type"], session["workers"]) == ("active", "quick", [])
    assert session["locationPath"] == str(client.server.workspace)


async def test_spawn_agent_verify_agent_active(client: RelayClient) -> None:
    ready = await client.spawn("auth")
    workspace = client.workspace("auth")
    assert ready == {
        "type": "agent:ready",
        "sessionId": client.session_id,
        "role": "auth",
        "workspace": workspace,
    }
    assert (await client.agents())["auth"] == {
        "role": "auth",
        "state": "ACTIVE",
        "workspace": workspace,
        "error": None,
    }


async def test_send_message_verify_response(client: RelayClient) -> None:
    await client.spawn("auth")
    await client.send("agent:message", role="auth", content="[[chunk hello]] [[chunk ' world']]")
    first = await client.wait_for_notice("agent:response")
    assert set(first) == {"type", "sessionId", "role", "content", "partial", "timestamp"}
    pieces = [first]
    while pieces[-1]["partial"]:
        pieces.append(await client.wait_for_notice("agent:response", role="auth"))
    assert "".join(each["content"] for each in pieces) == "hello world"


async def test_terminate_agent_verify_agent_removed_session_active(client: RelayClient) -> None:
    await client.spawn("auth")
    pid = (await client.pids())["auth"]
    ended = await client.terminate("auth")
    assert ended == {
        "type": "agent:terminated",
        "sessionId": client.session_id,
        "role": "auth",
        "reason": "user requested",
    }
    assert not psutil.pid_exists(pid)
    assert await client.agents() == {}
    assert (await client.session())["status"] == "active"


async def test_terminate_session_verify_all_cleaned(client: RelayClient) -> None:
    await client.spawn("auth")
    pid = (await client.pids())["auth"]
    ended = await client.terminate_session()
    assert ended == {
        "type": "session:terminated",
        "sessionId": client.session_id,
        "reason": "user requested",
        "agentsTerminated": 1,
    }
    assert not psutil.pid_exists(pid)
    session = await client.session()
    assert (session["status"], session["live"]) == ("completed", False)
    assert await client.closed() == 1000


# Multiple agents


async def test_spawn_3_agents_all_active(client: RelayClient) -> None:
    await client.spawn_all("auth", "db", "tests")
    assert await client.states() == {"auth": "ACTIVE", "db": "ACTIVE", "tests": "ACTIVE"}
    assert len(set((await client.pids()).values())) == 3


async def test_terminate_1_agent_others_unaffected(client: RelayClient) -> None:
    await client.spawn_all("auth", "db", "tests")
    pids = await client.pids()
    await client.terminate("auth")
    assert await client.states() == {"db": "ACTIVE", "tests": "ACTIVE"}
    assert [psutil.pid_exists(pids[role]) for role in ("auth", "db", "tests")] == [False, True, True]


async def test_send_messages_to_remaining_agents(client: RelayClient) -> None:
    await client.spawn_all("auth", "db", "tests")
    await client.terminate("auth")
    await client.exchange("db", "[[chunk tables]]", "tables")
    await client.exchange("tests", "[[chunk green]]", "green")


async def test_terminate_session_all_agents_cleaned(client: RelayClient) -> None:
    await client.spawn_all("auth", "db", "tests")
    pids = await client.pids()
    assert (await client.terminate_session())["agentsTerminated"] == 3
    terminated = [notice["role"] for notice in client.notices if notice["type"] == "agent:terminated"]
    assert sorted(terminated) == ["auth", "db", "tests"]
    assert not any(psutil.pid_exists(pid) for pid in pids.values())


# Failure scenarios


async def test_spawn_agent_with_invalid_workspace_agent_failed_session_active(client: RelayClient) -> None:
    await client.send("agent:spawn", role="auth", workspace="/etc", agentId="scripted")
    error = await client.wait_for_notice("error", role="auth")
    assert set(error) == {"type", "sessionId", "role", "error", "message"}
    assert "outside the workspace root" in error["message"]
    agent = (await client.agents())["auth"]
    assert (agent["state"], agent["error"]) == ("FAILED", error["message"])
    assert (await client.session())["status"] == "active"
    await client.spawn("auth")
    assert (await client.agents())["auth"]["workspace"] == client.workspace("auth")


async def test_terminate_agent_during_spawn_graceful_handling(client: RelayClient) -> None:
    await define_scripted(client.server, "slow", SLOW)
    await client.send("agent:spawn", role="auth", workspace=client.workspace("auth"), agentId="slow")
    await client.until_state("auth", "SPAWNING")
    assert (await client.terminate("auth"))["reason"] == "user requested"
    assert await client.agents() == {}
    await client.spawn("auth")


async def test_terminate_session_with_spawning_agents_all_cleaned(client: RelayClient) -> None:
    await define_scripted(client.server, "slow", SLOW)
    await client.spawn("db")
    for role in ("auth", "tests"):
        await client.send("agent:spawn", role=role, workspace=client.workspace(role), agentId="slow")
    assert (await client.terminate_session())["agentsTerminated"] == 3
    session = await client.session()
    assert [worker["state"] for worker in session["workers"]] == ["terminated"] * 3
    assert scripted_processes(client.server) == []


async def test_agent_process_crashes_session_stays_active(client: RelayClient) -> None:
    await client.spawn_all("auth", "db")
    await client.send("agent:message", role="auth", content="[[crash]]")
    error = await client.wait_for_notice("error", role="auth")
    assert (error["sessionId"], error["error"]) == (client.session_id, "remote_fault")
    assert await client.states() == {"auth": "FAILED", "db": "ACTIVE"}
    session = await client.session()
    assert session["status"] == "active"
    await until_logged(client.server, "the agent failed", session["workers"][0]["id"], error["message"])


# Edge cases


async def test_spawn_duplicate_role_error_returned(client: RelayClient) -> None:
    await client.spawn("auth")
    refused = await client.expect_error("agent:spawn", role="auth", workspace=client.workspace("other"))
    assert (refused["error"], refused["role"]) == ("conflict", "auth")
    assert list(await client.agents()) == ["auth"]


async def test_send_message_to_non_existent_agent_error(client: RelayClient) -> None:
    refused = await client.expect_error("agent:message", role="unknown", content="hello")
    assert (refused["error"], refused["role"]) == ("not_found", "unknown")


async def test_terminate_already_terminated_agent_idempotent(client: RelayClient) -> None:
    await client.spawn("auth")
    await client.terminate("auth")
    assert (await client.terminate("auth"))["role"] == "auth"
    assert not [notice for notice in client.notices if notice["type"] == "error"]


async def test_create_session_after_session_terminated_new_session(client: RelayClient) -> None:
    first = client.session_id
    await client.spawn("auth")
    await client.terminate_session()
    async with open_relay(client.server) as second:
        assert second.session_id != first
        assert await second.agents() == {}
        await second.spawn("auth")
        await second.terminate_session()


async def until_logged(server: Server, *parts: str) -> None:
    """Wait until a line of the server's log has all the parts."""
    async with asyncio.timeout(SECONDS):
        while not any(all(part in line for part in parts) for line in server.output().splitlines()):
            await asyncio.sleep(0.02)


def scripted_processes(server: Server) -> list[int]:
    """Return the pids of the scripted agents of this server that still run."""
    journal = str(server.home.parent)
    found = []
    for process in psutil.process_iter(["cmdline", "pid"]):
        words = " ".join(process.info["cmdline"] or [])
        if "scripted.py" in words and journal in words:
            found.append(process.info["pid"])
    return found
