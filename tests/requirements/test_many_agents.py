"""Document 003, many agents in one session over the relay: requirements 55 to 69."""

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from support.relay_client import RelayClient, open_relay
from support.server import Server
from support.session_client import define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

SLOW = {"on": {"initialize": [{"do": "sleep", "text": "600"}]}}  # its handshake does not end
STUBBORN = {"agent": {"ignore_term": True, "ignore_eof": True}}


@pytest_asyncio.fixture(loop_scope="session")
async def client(shared: Server) -> AsyncIterator[RelayClient]:
    async with open_relay(shared) as connected:
        yield connected
        if (await connected.session())["status"] == "active":
            await connected.terminate_session()


async def test_r55_a_session_has_any_number_of_agents(client: RelayClient) -> None:
    assert await client.agents() == {}
    await client.spawn_all("auth", "db", "tests")
    assert await client.states() == {"auth": "ACTIVE", "db": "ACTIVE", "tests": "ACTIVE"}


async def test_r56_a_role_is_free_text_and_unique_in_its_session(client: RelayClient) -> None:
    await client.spawn("Auth & co — ünïcode")
    refused = await client.expect_error(
        "agent:spawn", role="Auth & co — ünïcode", workspace=client.workspace("x")
    )
    assert refused["error"] == "conflict"
    await client.terminate("Auth & co — ünïcode")
    await client.spawn("Auth & co — ünïcode")


async def test_r57_a_spawn_needs_a_role_a_workspace_and_an_active_session(client: RelayClient) -> None:
    for fields in ({"role": "", "workspace": client.workspace("x")}, {"role": "auth", "workspace": ""}):
        assert (await client.expect_error("agent:spawn", **fields))["error"] == "invalid"
    await client.terminate_session()
    async with open_relay(client.server, client.session_id) as later:
        refused = await later.expect_error("agent:spawn", role="auth", workspace=client.workspace("x"))
    assert refused["error"] == "conflict"


async def test_r58_an_agent_is_spawning_and_then_active_or_failed(client: RelayClient) -> None:
    await define_scripted(client.server, "slow", SLOW)
    await client.send("agent:spawn", role="slow", workspace=client.workspace("slow"), agentId="slow")
    await client.until_state("slow", "SPAWNING")
    await client.spawn("auth")
    await client.send("agent:spawn", role="lost", workspace="/etc", agentId="scripted")
    await client.until_state("lost", "FAILED")
    assert (await client.states())["auth"] == "ACTIVE"


async def test_r59_a_failed_agent_affects_no_other_and_its_role_can_be_tried_again(
    client: RelayClient,
) -> None:
    await client.spawn("db")
    await client.send("agent:spawn", role="auth", workspace="/etc", agentId="scripted")
    error = await client.wait_for_notice("error", role="auth")
    assert (await client.agents())["auth"]["error"] == error["message"]
    assert (await client.states())["db"] == "ACTIVE"
    assert (await client.session())["status"] == "active"
    await client.spawn("auth")


async def test_r60_a_workspace_that_is_made_has_mode_0750(client: RelayClient) -> None:
    directory = Path(client.workspace("made-for-an-agent"))
    await client.spawn("auth", workspace=str(directory))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o750


async def test_r61_requests_and_notices_have_the_documented_names_and_fields(client: RelayClient) -> None:
    notices = [
        client.notices[0],
        await client.spawn("auth"),
        await client.expect_error("agent:message", role="unknown", content="x"),
    ]
    await client.send("agent:message", role="auth", content="[[chunk hello]]")
    notices += [
        await client.wait_for_notice("agent:response"),
        await client.terminate("auth"),
        await client.terminate_session(),
    ]
    assert {notice["type"]: set(notice) - {"type", "id"} for notice in notices} == {
        "session:created": {"sessionId", "timestamp"},
        "agent:ready": {"sessionId", "role", "workspace"},
        "error": {"sessionId", "role", "error", "message"},
        "agent:response": {"sessionId", "role", "content", "partial", "timestamp"},
        "agent:terminated": {"sessionId", "role", "reason"},
        "session:terminated": {"sessionId", "reason", "agentsTerminated"},
    }
    assert await client.closed() == 1000


async def test_r62_a_message_needs_an_active_agent(client: RelayClient) -> None:
    await define_scripted(client.server, "slow", SLOW)
    await client.send("agent:spawn", role="auth", workspace=client.workspace("auth"), agentId="slow")
    refused = await client.expect_error("agent:message", role="auth", content="hello")
    assert (refused["error"], "must be active" in refused["message"]) == ("conflict", True)
    await client.terminate("auth")
    await client.spawn("auth")
    await client.exchange("auth", "[[chunk hello]]", "hello")


async def test_r63_agents_are_listed_and_read_by_role(client: RelayClient) -> None:
    await client.spawn_all("auth", "db")
    listed = await client.agents()
    assert list(listed) == ["auth", "db"]
    await client.send("agent:get", role="db")
    assert (await client.wait_for_notice("agent:get"))["agent"] == listed["db"]


async def test_r64_terminating_twice_is_not_an_error(client: RelayClient) -> None:
    await client.spawn("auth")
    assert (await client.terminate("auth"))["reason"] == "user requested"
    assert (await client.terminate("auth"))["role"] == "auth"
    await client.terminate_session()
    async with open_relay(client.server, client.session_id) as again:
        assert (await again.terminate_session())["agentsTerminated"] == 0


async def test_r65_the_end_of_a_session_ends_its_agents_in_parallel(client: RelayClient) -> None:
    await define_scripted(client.server, "stubborn", STUBBORN)
    for role in ("first", "second"):
        await client.spawn(role, agentId="stubborn")  # each is killed after 5 seconds
    await client.spawn("third")
    pids = await client.pids()
    assert (await client.terminate_session())["agentsTerminated"] == 3
    assert not any(psutil.pid_exists(pid) for pid in pids.values())
    path = f"/api/sessions/{client.session_id}/events?types=worker_terminated,session_end"
    ends = (await client.server.call("GET", path, 200))["events"]
    assert len(ends) == 4
    assert len({end["timestamp"] for end in ends}) == 1  # all were asked to end at once


async def test_r66_worktrees_and_files_stay(client: RelayClient) -> None:
    await client.spawn("auth")
    kept = Path(client.workspace("auth")) / "work"
    kept.write_text("done")
    await client.terminate_session()
    assert kept.read_text() == "done"


async def test_r67_an_end_during_a_spawn_leaves_no_process(client: RelayClient) -> None:
    await define_scripted(client.server, "slow", SLOW)
    await client.send("agent:spawn", role="auth", workspace=client.workspace("auth"), agentId="slow")
    await client.until_state("auth", "SPAWNING")
    assert (await client.terminate_session())["agentsTerminated"] == 1
    (worker,) = (await client.session())["workers"]
    assert worker["state"] == "terminated"
    assert worker["pid"] is None or not psutil.pid_exists(worker["pid"])


async def test_r68_a_crash_marks_only_its_agent_as_failed_and_is_logged(client: RelayClient) -> None:
    await client.spawn_all("auth", "db")
    await client.send("agent:message", role="auth", content="[[crash]]")
    await client.wait_for_notice("error", role="auth")
    assert await client.states() == {"auth": "FAILED", "db": "ACTIVE"}
    assert (await client.session())["status"] == "active"
    (worker,) = [each for each in (await client.session())["workers"] if each["role"] == "auth"]
    async with asyncio.timeout(30):
        while not any(
            worker["id"] in line for line in client.server.output().splitlines() if "failed" in line
        ):
            await asyncio.sleep(0.02)


async def test_r69_many_clients_use_one_session_at_once(client: RelayClient) -> None:
    await client.spawn("shared")

    async def use(number: int) -> None:
        async with open_relay(client.server, client.session_id) as other:
            await other.spawn(f"own-{number}")
            await other.exchange(f"own-{number}", f"[[chunk hello-{number}]]", f"hello-{number}")
            await other.terminate(f"own-{number}")

    await asyncio.gather(*(use(number) for number in range(4)))
    assert await client.states() == {"shared": "ACTIVE"}
