"""Many agents in one session over `/ws/relay`: the failure of one agent does not affect the others."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from bullpen.keeper.marker import find_marked
from bullpen.workers.children import ChildHandles
from support.relay_client import RelayClient, open_relay
from support.server import Server
from support.session_client import define_scripted
from web.clients import new_token_headers

pytestmark = pytest.mark.asyncio(loop_scope="session")

SLOW = {"on": {"initialize": [{"do": "sleep", "text": "600"}]}}
STUBBORN = {"agent": {"ignore_term": True, "ignore_eof": True}}


@pytest_asyncio.fixture(loop_scope="session")
async def client(shared_server: Server) -> AsyncIterator[RelayClient]:
    await define_scripted(shared_server)
    async with open_relay(shared_server) as connected:
        yield connected
        if (await connected.session())["status"] == "active":
            await connected.terminate_session()


async def test_a_session_without_agents_can_be_terminated(client: RelayClient) -> None:
    assert await client.agents() == {}
    assert (await client.terminate_session())["agentsTerminated"] == 0


async def test_of_many_spawns_with_one_role_at_once_one_succeeds(client: RelayClient) -> None:
    fields = {"role": "auth", "workspace": client.workspace("auth"), "agentId": "scripted"}
    for _ in range(10):
        await client.send("agent:spawn", **fields)
    await client.send("agent:list")
    await client.wait_for_notice("agent:list")
    refused = [notice for notice in client.notices if notice["type"] == "error"]
    assert [notice["error"] for notice in refused] == ["conflict"] * 9
    assert len((await client.session())["workers"]) == 1


@pytest.mark.parametrize(
    "fields", [{"role": " "}, {"workspace": ""}, {"role": "a\nb"}, {"agentId": "unknown"}]
)
async def test_an_invalid_spawn_is_refused(client: RelayClient, fields: dict[str, Any]) -> None:
    fields = {"role": "auth", "workspace": client.workspace("auth"), **fields}
    assert (await client.expect_error("agent:spawn", **fields))["error"] == "invalid"
    assert await client.agents() == {}


async def test_a_spawn_in_an_ended_session_is_refused(client: RelayClient) -> None:
    await client.terminate_session()
    async with open_relay(client.server, client.session_id) as other:
        refused = await other.expect_error("agent:spawn", role="auth", workspace=client.workspace("auth"))
    assert refused["error"] == "conflict"


async def test_an_agent_is_spawning_before_it_is_active(client: RelayClient) -> None:
    await define_scripted(client.server, "slow", SLOW)
    await client.send("agent:spawn", role="auth", workspace=client.workspace("auth"), agentId="slow")
    await client.until_state("auth", "SPAWNING")
    await client.terminate("auth")


async def test_the_role_of_a_failed_agent_can_be_spawned_with_other_settings(client: RelayClient) -> None:
    body = {"name": "Gone", "kind": "acp", "command": ["/nonexistent/agent"]}
    await client.server.call("PUT", "/api/agents/gone", 200, json=body)
    await client.send("agent:spawn", role="auth", workspace=client.workspace("auth"), agentId="gone")
    await client.wait_for_notice("error", role="auth")
    assert await client.states() == {"auth": "FAILED"}
    await client.spawn("auth", workspace=client.workspace("elsewhere"))
    assert [notice["type"] for notice in client.notices].count("agent:terminated") == 0
    assert (await client.agents())["auth"]["workspace"] == client.workspace("elsewhere")
    await client.exchange("auth", "[[chunk here]]", "here")


async def test_a_workspace_that_the_server_creates_has_mode_0750(client: RelayClient) -> None:
    deep = Path(client.workspace("deep")) / "down" / "below"
    await client.spawn("deep", workspace=str(deep))
    assert [stat.S_IMODE(each.stat().st_mode) for each in (deep, deep.parent)] == [0o750, 0o750]


@pytest.mark.parametrize(
    "fields",
    [{"role": "taken"}, {"role": " "}, {"role": "a\nb"}, {"agentId": "unknown"}],
    ids=["taken", "blank", "lines", "unknown"],
)
async def test_a_refused_spawn_creates_no_directory(client: RelayClient, fields: dict[str, Any]) -> None:
    await client.spawn("taken")
    workspace = Path(client.workspace("refused")) / "below"
    fields = {"role": "auth", "workspace": str(workspace), **fields}
    await client.expect_error("agent:spawn", **fields)
    assert not workspace.parent.exists()


async def test_a_spawn_beyond_the_limit_or_in_an_ended_session_creates_no_directory(server: Server) -> None:
    await server.kill()
    server.set(AGENT_MAX_SESSIONS="1")
    await server.start()
    await define_scripted(server)
    async with open_relay(server) as first, open_relay(server) as second:
        await first.spawn("auth")
        workspace = Path(second.workspace("refused"))
        refused = await second.expect_error("agent:spawn", role="auth", workspace=str(workspace))
        assert refused["error"] == "too_many"
        await first.terminate_session()
        await second.terminate_session()
        async with open_relay(server, second.session_id) as third:
            refused = await third.expect_error("agent:spawn", role="auth", workspace=str(workspace))
    assert refused["error"] == "conflict"
    assert not workspace.exists()


async def test_a_workspace_is_never_created_through_a_link_that_leads_out(client: RelayClient) -> None:
    outside = client.server.home.parent / "outside"
    outside.mkdir(exist_ok=True)
    (client.server.workspace / "way-out").symlink_to(outside)
    await client.send("agent:spawn", role="out", workspace=client.workspace("way-out/new"))
    assert "outside" in (await client.wait_for_notice("error", role="out"))["message"]
    assert list(outside.iterdir()) == []
    worker = (await client.session())["workers"][0]
    path = f"/api/sessions/{client.session_id}/workers/{worker['id']}"
    await client.server.call("POST", f"{path}/restart", 200)
    restarted = await client.server.worker_in(client.session_id, worker["id"], "failed")
    assert "outside the workspace root" in restarted["error"]


async def test_notices_have_their_documented_names_and_fields(client: RelayClient) -> None:
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
    fields = {notice.pop("type"): sorted(set(notice) - {"id"}) for notice in notices}
    assert fields == {
        "session:created": ["sessionId", "timestamp"],
        "agent:ready": ["role", "sessionId", "workspace"],
        "error": ["error", "message", "role", "sessionId"],
        "agent:response": ["content", "partial", "role", "sessionId", "timestamp"],
        "agent:terminated": ["reason", "role", "sessionId"],
        "session:terminated": ["agentsTerminated", "reason", "sessionId"],
    }


async def test_a_message_to_an_agent_that_is_not_active_is_refused(client: RelayClient) -> None:
    await define_scripted(client.server, "slow", SLOW)
    await client.send("agent:spawn", role="auth", workspace=client.workspace("auth"), agentId="slow")
    refused = await client.expect_error("agent:message", role="auth", content="hello")
    assert (refused["error"], "spawning" in refused["message"]) == ("conflict", True)
    await client.terminate("auth")


async def test_a_message_to_a_busy_agent_waits_for_the_end_of_its_turn(client: RelayClient) -> None:
    await client.spawn("auth")
    await client.send("agent:message", role="auth", content="[[chunk one]] [[sleep 0.5]]")
    await client.send("agent:message", role="auth", content="[[chunk two]]")
    answer = ""
    while answer != "onetwo":
        assert "onetwo".startswith(answer)
        answer += (await client.wait_for_notice("agent:response"))["content"]


async def test_agents_are_listed_and_read_over_rest_too(client: RelayClient) -> None:
    await client.spawn_all("auth", "db")
    path = f"/api/sessions/{client.session_id}/workers"
    listed = (await client.server.call("GET", path))["workers"]
    assert [(worker["role"], worker["state"]) for worker in listed] == [("auth", "active"), ("db", "active")]
    worker = await client.server.call("GET", f"{path}/{listed[1]['id']}")
    assert (worker["role"], psutil.pid_exists(worker["pid"])) == ("db", True)


async def test_a_session_can_be_terminated_twice(client: RelayClient) -> None:
    await client.terminate_session()
    async with open_relay(client.server, client.session_id) as other:
        assert (await other.terminate_session())["agentsTerminated"] == 0
        assert await other.closed() == 1000


async def test_the_end_of_another_session_does_not_close_the_socket(client: RelayClient) -> None:
    async with open_relay(client.server) as other:
        await other.terminate_session()
    await client.send("session:terminate", sessionId=other.session_id)
    await client.wait_for_notice("session:terminated", sessionId=other.session_id)
    assert await client.agents() == {}


async def test_the_socket_is_closed_when_its_session_is_ended_elsewhere(client: RelayClient) -> None:
    await client.spawn("auth")
    await client.server.call("DELETE", f"/api/sessions/{client.session_id}", 200)
    ended = await client.wait_for_notice("session:terminated")
    assert (ended["reason"], ended["agentsTerminated"]) == ("cancelled", 1)
    assert await client.closed() == 1000


async def test_one_agent_is_read_by_its_role(client: RelayClient) -> None:
    await client.spawn_all("auth", "db")
    await client.send("agent:get", role="auth")
    found = await client.wait_for_notice("agent:get")
    assert found == {
        "type": "agent:get",
        "sessionId": client.session_id,
        "agent": (await client.agents())["auth"],
    }
    await client.terminate("auth")
    assert (await client.expect_error("agent:get", role="auth"))["error"] == "not_found"


async def test_the_last_piece_of_each_block_of_an_answer_is_not_partial(client: RelayClient) -> None:
    await client.spawn("auth")
    await client.send(
        "agent:message", role="auth", content="[[chunk one]] [[sleep 0.2]] [[plan x]] [[chunk two]]"
    )
    answers = [""]
    while len(answers) < 3:
        piece = await client.wait_for_notice("agent:response", role="auth")
        answers[-1] += piece["content"]
        if not piece["partial"]:
            answers.append("")
    assert answers == ["one", "two", ""]


async def test_all_workers_are_asked_to_end_before_any_is_killed(client: RelayClient) -> None:
    """Each program records the time of its signal. One after another, they would be 5 seconds apart."""
    directory = client.server.workspace
    script = directory / "stay.sh"
    script.write_text("trap 'date +%s%N >> $1.asked' TERM HUP\ntouch $1.up\nwhile :; do sleep 0.1; done\n")
    names = [directory / name for name in ("first", "second", "third")]
    workers = [await terminal_with(client, each.name, f"exec bash {script} {each}", each) for each in names]
    await client.terminate_session()
    assert not any(psutil.pid_exists(worker["pid"]) for worker in workers)
    asked = [int(each.with_suffix(".asked").read_text().split()[0]) for each in names]
    assert max(asked) - min(asked) < 5e9


async def test_an_agent_that_does_not_end_delays_no_other_agent(client: RelayClient) -> None:
    await define_scripted(client.server, "stubborn", STUBBORN)
    await client.spawn("stubborn", agentId="stubborn")
    await client.spawn("auth")
    await client.send("agent:terminate", role="stubborn")
    await client.exchange("auth", "[[chunk meanwhile]]", "meanwhile")
    assert "agent:terminated" not in [notice["type"] for notice in client.notices]
    await client.wait_for_notice("agent:terminated", role="stubborn")


async def test_a_workspace_stays_when_its_session_ends(client: RelayClient) -> None:
    await client.spawn("auth")
    kept = Path(client.workspace("auth")) / "work"
    kept.write_text("done")
    await client.terminate_session()
    assert kept.read_text() == "done"


async def test_a_session_terminated_right_after_a_spawn_leaves_no_process(client: RelayClient) -> None:
    for role in ("auth", "db", "tests"):
        await client.send("agent:spawn", role=role, workspace=client.workspace(role), agentId="scripted")
    await client.terminate_session()
    workers = (await client.session())["workers"]
    assert [worker["state"] for worker in workers] == ["terminated"] * 3
    home_id = ChildHandles(client.server.home).home_id
    ids = {worker["id"] for worker in workers}
    assert [pid for pid, worker_id, _ in find_marked(home_id) if worker_id in ids] == []


async def test_a_crash_is_reported_once_and_does_not_affect_other_agents(client: RelayClient) -> None:
    await client.spawn_all("auth", "db")
    before = (await client.session())["workers"][1]
    await client.send("agent:message", role="auth", content="[[stderr out-of-luck]] [[exit 3]]")
    await client.wait_for_notice("error", role="auth")
    await client.exchange("db", "[[chunk fine]]", "fine")
    after = (await client.session())["workers"][1]
    assert (after["pid"], after["run"], after["state"]) == (before["pid"], 1, "active")
    assert [notice["type"] for notice in client.notices].count("error") == 1


async def test_many_clients_use_one_session_and_all_receive_notices(client: RelayClient) -> None:
    async def use_session(number: int) -> list[str]:
        async with open_relay(client.server, client.session_id) as other:
            await other.agents()
            await other.spawn(f"agent-{number}")
            await other.exchange(f"agent-{number}", f"[[chunk answer-{number}]]", f"answer-{number}")
            await other.terminate(f"agent-{number}")
            return [notice["type"] for notice in other.notices]

    received = await asyncio.gather(*(use_session(number) for number in range(4)))
    assert all({"agent:ready", "agent:response", "agent:terminated"} <= set(types) for types in received)
    while {n.get("role") for n in client.notices if n["type"] == "agent:terminated"} < {
        f"agent-{number}" for number in range(4)
    }:
        await client.wait_for_notice("agent:terminated")
    assert await client.agents() == {}


async def test_clients_of_many_sessions_receive_only_notices_of_their_own(shared_server: Server) -> None:
    await define_scripted(shared_server)

    async def use_session(number: int) -> None:
        async with open_relay(shared_server) as own:
            await own.spawn("auth")
            await own.exchange("auth", f"[[chunk own-{number}]]", f"own-{number}")
            await own.terminate_session()
            assert {notice.get("sessionId", own.session_id) for notice in own.notices} == {own.session_id}

    await asyncio.gather(*(use_session(number) for number in range(3)))


async def test_a_socket_has_one_session(client: RelayClient) -> None:
    assert (await client.expect_error("session:create"))["error"] == "conflict"
    async with open_relay(client.server) as other:
        refused = await client.expect_error("agent:list", sessionId=other.session_id)
        assert (refused["error"], client.session_id in refused["message"]) == ("conflict", True)
        await other.terminate_session()


async def test_a_session_outlives_its_socket_and_is_continued_by_another(client: RelayClient) -> None:
    async with open_relay(client.server) as first:
        await first.spawn("auth")
        session_id = first.session_id
    async with open_relay(client.server, session_id) as second:
        assert await second.states() == {"auth": "ACTIVE"}
        await second.exchange("auth", "[[chunk still here]]", "still here")
        await second.terminate_session()


async def test_a_view_token_receives_notices_but_its_orders_are_refused(client: RelayClient) -> None:
    view = await new_token_headers(client.server, "view")
    async with open_relay(client.server, client.session_id, headers=view) as viewer:
        assert await viewer.agents() == {}
        await client.spawn("auth")
        await viewer.wait_for_notice("agent:ready", role="auth")
        for type, fields in {
            "session:create": {},
            "agent:spawn": {"role": "x", "workspace": client.workspace("x")},
            "agent:message": {"role": "auth", "content": "x"},
            "agent:terminate": {"role": "auth"},
            "session:terminate": {},
        }.items():
            assert (await viewer.expect_error(type, **fields))["error"] == "forbidden"
    assert await client.states() == {"auth": "ACTIVE"}


async def test_an_invalid_message_is_answered_and_the_socket_stays_open(client: RelayClient) -> None:
    for type, fields in [("agent:dance", {}), ("agent:spawn", {"role": 7}), ("agent:message", {})]:
        assert (await client.expect_error(type, **fields))["error"] == "invalid"
    assert (await client.expect_error("agent:list", sessionId="unknown"))["error"] == "not_found"
    assert await client.agents() == {}


async def test_a_crashed_agent_does_not_affect_agents_of_other_kinds_in_its_session(
    client: RelayClient,
) -> None:
    """One agent speaks ACP, one has only a terminal and ignores signals, and one crashes."""
    await define_scripted(client.server, "crashing")
    ignoring_command = ["bash", "-c", "trap '' TERM HUP; while :; do sleep 0.1; done"]
    body = {"name": "Ignoring", "kind": "pty", "command": ignoring_command}
    await client.server.call("PUT", "/api/agents/ignoring", 200, json=body)
    await client.spawn("pty", agentId="ignoring")
    await client.spawn("acp")
    await client.spawn("crashing", agentId="crashing")
    before = await worker_values(client)

    await client.send("agent:message", role="crashing", content="[[crash]]")
    await client.wait_for_notice("error", role="crashing")
    after = await worker_values(client)
    assert (after["acp"], after["pty"]) == (before["acp"], before["pty"])
    assert (await client.session())["status"] == "active"

    await client.spawn("crashing", agentId="crashing")
    again = (await worker_values(client))["crashing"]
    assert (again["id"], again["run"]) == (before["crashing"]["id"], 2)
    await client.exchange("crashing", "[[chunk back]]", "back")

    assert (await client.terminate_session())["agentsTerminated"] == 3
    ended = (await client.session())["workers"]
    assert not any(psutil.pid_exists(worker["pid"]) for worker in ended)


async def worker_values(client: RelayClient) -> dict[str, dict[str, Any]]:
    """Return, by role, the values of an agent that a crash of another must not change."""
    names = ("id", "pid", "run", "state", "error", "exitCode", "signal")
    workers = (await client.session())["workers"]
    return {worker["role"]: {name: worker[name] for name in names} for worker in workers}


async def terminal_with(client: RelayClient, role: str, command: str, flag: Path) -> dict[str, Any]:
    """Return a new terminal whose command has created the file `<flag>.up`."""
    worker = await client.server.new_terminal(client.session_id, role=role)
    async with client.server.socket(f"/ws/session/{client.session_id}/worker/{worker['id']}") as ws:
        await ws.send(json.dumps({"type": "input", "data": f"{command}\r"}))
        async with asyncio.timeout(30):
            while not flag.with_suffix(".up").exists():
                await asyncio.sleep(0.02)
    return worker
