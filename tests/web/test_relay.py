"""Many agents in one session (R55-R69): what one does or suffers is its own business."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from support.relay_client import RelayClient, open_relay
from support.server import Server
from support.session_client import define_scripted
from web.people import bearer

pytestmark = pytest.mark.asyncio(loop_scope="session")

SLOW = {"on": {"initialize": [{"do": "sleep", "text": "600"}]}}
STUBBORN = {"agent": {"ignore_term": True, "ignore_eof": True}}


@pytest_asyncio.fixture(loop_scope="session")
async def client(house: Server) -> AsyncIterator[RelayClient]:
    await define_scripted(house)
    async with open_relay(house) as this:
        yield this
        if (await this.session())["status"] == "active":
            await this.terminate_session()


async def test_r55_a_session_may_have_no_agents_and_end(client: RelayClient) -> None:
    assert await client.agents() == {}
    assert (await client.terminate_session())["agentsTerminated"] == 0


async def test_r56_of_many_who_want_one_role_at_once_one_gets_it(client: RelayClient) -> None:
    fields = {"role": "auth", "workspace": client.workspace("auth"), "agentId": "scripted"}
    for _ in range(10):
        await client.send("agent:spawn", **fields)
    await client.send("agent:list")
    await client.wait_for_notice("agent:list")
    refused = [notice for notice in client.notices if notice["type"] == "error"]
    assert [notice["error"] for notice in refused] == ["conflict"] * 9
    assert len((await client.session())["workers"]) == 1


@pytest.mark.parametrize(
    "fields", [{"role": " "}, {"workspace": ""}, {"role": "a\nb"}, {"agentId": "nobody"}]
)
async def test_r57_a_spawn_that_makes_no_sense_is_refused(
    client: RelayClient, fields: dict[str, Any]
) -> None:
    fields = {"role": "auth", "workspace": client.workspace("auth"), **fields}
    assert (await client.expect_error("agent:spawn", **fields))["error"] == "invalid"
    assert await client.agents() == {}


async def test_r57_a_session_that_has_ended_takes_no_agents(client: RelayClient) -> None:
    await client.terminate_session()
    refused = await client.expect_error("agent:spawn", role="auth", workspace=client.workspace("auth"))
    assert refused["error"] == "conflict"


async def test_r58_an_agent_is_spawning_before_it_is_active(client: RelayClient) -> None:
    await define_scripted(client.server, "slow", SLOW)
    await client.send("agent:spawn", role="auth", workspace=client.workspace("auth"), agentId="slow")
    await client.until_state("auth", "SPAWNING")
    await client.terminate("auth")


async def test_r59_a_role_that_failed_can_be_tried_again_with_anything(client: RelayClient) -> None:
    body = {"name": "Gone", "kind": "acp", "command": ["/nonexistent/agent"]}
    await client.server.call("PUT", "/api/agents/gone", 200, json=body)
    await client.send("agent:spawn", role="auth", workspace=client.workspace("auth"), agentId="gone")
    await client.wait_for_notice("error", role="auth")
    assert await client.states() == {"auth": "FAILED"}
    await client.spawn("auth", workspace=client.workspace("elsewhere"))
    assert [notice["type"] for notice in client.notices].count("agent:terminated") == 0
    assert (await client.agents())["auth"]["workspace"] == client.workspace("elsewhere")
    await client.exchange("auth", "[[chunk here]]", "here")


async def test_r60_a_workspace_we_make_is_for_its_owner_and_group(client: RelayClient) -> None:
    deep = Path(client.workspace("deep")) / "down" / "below"
    await client.spawn("deep", workspace=str(deep))
    assert [stat.S_IMODE(each.stat().st_mode) for each in (deep, deep.parent)] == [0o750, 0o750]


async def test_r60_a_workspace_is_never_made_through_a_link_that_leads_out(client: RelayClient) -> None:
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


async def test_r61_notices_have_these_names_and_these_fields(client: RelayClient) -> None:
    told = [
        client.notices[0],
        await client.spawn("auth"),
        await client.expect_error("agent:message", role="nobody", content="x"),
    ]
    await client.send("agent:message", role="auth", content="[[chunk hello]]")
    told += [
        await client.wait_for_notice("agent:response"),
        await client.terminate("auth"),
        await client.terminate_session(),
    ]
    fields = {notice.pop("type"): sorted(set(notice) - {"id"}) for notice in told}
    assert fields == {
        "session:created": ["sessionId", "timestamp"],
        "agent:ready": ["role", "sessionId", "workspace"],
        "error": ["error", "message", "role", "sessionId"],
        "agent:response": ["content", "role", "sessionId", "timestamp"],
        "agent:terminated": ["reason", "role", "sessionId"],
        "session:terminated": ["agentsTerminated", "reason", "sessionId"],
    }


async def test_r62_a_message_needs_an_active_agent(client: RelayClient) -> None:
    await define_scripted(client.server, "slow", SLOW)
    await client.send("agent:spawn", role="auth", workspace=client.workspace("auth"), agentId="slow")
    refused = await client.expect_error("agent:message", role="auth", content="hello")
    assert (refused["error"], "spawning" in refused["message"]) == ("conflict", True)
    await client.terminate("auth")


async def test_r62_what_is_said_to_a_busy_agent_waits_its_turn(client: RelayClient) -> None:
    await client.spawn("auth")
    await client.send("agent:message", role="auth", content="[[chunk one]] [[sleep 0.5]]")
    await client.send("agent:message", role="auth", content="[[chunk two]]")
    said = ""
    while said != "onetwo":
        assert "onetwo".startswith(said)
        said += (await client.wait_for_notice("agent:response"))["content"]


async def test_r63_agents_are_listed_and_got_over_rest_too(client: RelayClient) -> None:
    await client.spawn_all("auth", "db")
    path = f"/api/sessions/{client.session_id}/workers"
    listed = (await client.server.call("GET", path))["workers"]
    assert [(worker["role"], worker["state"]) for worker in listed] == [("auth", "active"), ("db", "active")]
    one = await client.server.call("GET", f"{path}/{listed[1]['id']}")
    assert (one["role"], psutil.pid_exists(one["pid"])) == ("db", True)


async def test_r64_ending_a_session_twice_is_fine(client: RelayClient) -> None:
    await client.terminate_session()
    assert (await client.terminate_session())["agentsTerminated"] == 0


async def test_r65_all_are_asked_to_end_before_one_that_will_not_is_killed(client: RelayClient) -> None:
    """Each notes when it is asked and stays: one after another they would be asked 5 seconds apart."""
    place = client.server.workspace
    script = place / "stay.sh"
    script.write_text("trap 'date +%s%N >> $1.asked' TERM HUP\ntouch $1.up\nwhile :; do sleep 0.1; done\n")
    names = [place / name for name in ("first", "second", "third")]
    workers = [await terminal_with(client, each.name, f"exec bash {script} {each}", each) for each in names]
    await client.terminate_session()
    assert not any(psutil.pid_exists(worker["pid"]) for worker in workers)
    asked = [int(each.with_suffix(".asked").read_text().split()[0]) for each in names]
    assert max(asked) - min(asked) < 5e9


async def test_r65_an_agent_that_will_not_close_keeps_nobody_waiting(client: RelayClient) -> None:
    await define_scripted(client.server, "stubborn", STUBBORN)
    await client.spawn("stubborn", agentId="stubborn")
    await client.spawn("auth")
    await client.send("agent:terminate", role="stubborn")
    await client.exchange("auth", "[[chunk meanwhile]]", "meanwhile")
    assert "agent:terminated" not in [notice["type"] for notice in client.notices]
    await client.wait_for_notice("agent:terminated", role="stubborn")


async def test_r66_a_workspace_stays_when_its_session_ends(client: RelayClient) -> None:
    await client.spawn("auth")
    kept = Path(client.workspace("auth")) / "work"
    kept.write_text("done")
    await client.terminate_session()
    assert kept.read_text() == "done"


async def test_r67_a_session_ended_right_after_a_spawn_leaves_nothing(client: RelayClient) -> None:
    for role in ("auth", "db", "tests"):
        await client.send("agent:spawn", role=role, workspace=client.workspace(role), agentId="scripted")
    await client.terminate_session()
    session = await client.session()
    assert {worker["state"] for worker in session["workers"]} == {"terminated"}
    assert [each for each in await client.pids() if each is None] == []


async def test_r68_a_crash_is_told_once_and_only_of_its_own_agent(client: RelayClient) -> None:
    await client.spawn_all("auth", "db")
    before = (await client.session())["workers"][1]
    await client.send("agent:message", role="auth", content="[[stderr out-of-luck]] [[exit 3]]")
    await client.wait_for_notice("error", role="auth")
    await client.exchange("db", "[[chunk fine]]", "fine")
    after = (await client.session())["workers"][1]
    assert (after["pid"], after["run"], after["state"]) == (before["pid"], 1, "active")
    assert [notice["type"] for notice in client.notices].count("error") == 1


async def test_r69_many_clients_drive_one_session_and_all_are_told(client: RelayClient) -> None:
    async def one(number: int) -> list[str]:
        async with open_relay(client.server, client.session_id) as other:
            await other.agents()
            await other.spawn(f"agent-{number}")
            await other.exchange(f"agent-{number}", f"[[chunk answer-{number}]]", f"answer-{number}")
            await other.terminate(f"agent-{number}")
            return [notice["type"] for notice in other.notices]

    told = await asyncio.gather(*(one(number) for number in range(4)))
    assert all({"agent:ready", "agent:response", "agent:terminated"} <= set(types) for types in told)
    while {n.get("role") for n in client.notices if n["type"] == "agent:terminated"} < {
        f"agent-{number}" for number in range(4)
    }:
        await client.wait_for_notice("agent:terminated")
    assert await client.agents() == {}


async def test_r69_many_sessions_at_once_are_told_only_of_their_own(house: Server) -> None:
    await define_scripted(house)

    async def one(number: int) -> None:
        async with open_relay(house) as mine:
            await mine.spawn("auth")
            await mine.exchange("auth", f"[[chunk own-{number}]]", f"own-{number}")
            await mine.terminate_session()
            assert {notice.get("sessionId", mine.session_id) for notice in mine.notices} == {mine.session_id}

    await asyncio.gather(*(one(number) for number in range(3)))


async def test_a_socket_has_one_live_session(client: RelayClient) -> None:
    assert (await client.expect_error("session:create"))["error"] == "conflict"
    async with open_relay(client.server) as other:
        refused = await client.expect_error("agent:list", sessionId=other.session_id)
        assert (refused["error"], client.session_id in refused["message"]) == ("conflict", True)
        await other.terminate_session()


async def test_a_session_outlives_its_socket_and_is_taken_up_by_another(client: RelayClient) -> None:
    async with open_relay(client.server) as first:
        await first.spawn("auth")
        session_id = first.session_id
    async with open_relay(client.server, session_id) as second:
        assert await second.states() == {"auth": "ACTIVE"}
        await second.exchange("auth", "[[chunk still here]]", "still here")
        await second.terminate_session()


async def test_who_may_only_view_sees_but_orders_nothing(client: RelayClient) -> None:
    view = await bearer(client.server, "view")
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


async def test_nonsense_is_answered_and_the_socket_stays(client: RelayClient) -> None:
    for type, fields in [("agent:dance", {}), ("agent:spawn", {"role": 7}), ("agent:message", {})]:
        assert (await client.expect_error(type, **fields))["error"] == "invalid"
    assert (await client.expect_error("agent:list", sessionId="nobody"))["error"] == "not_found"
    assert await client.agents() == {}


async def test_three_kinds_of_agents_share_a_session_and_nothing_else(client: RelayClient) -> None:
    """One speaks ACP, one has only a terminal and will not end, one crashes."""
    await define_scripted(client.server, "crashing")
    deaf = ["bash", "-c", "trap '' TERM HUP; while :; do sleep 0.1; done"]
    body = {"name": "Deaf", "kind": "pty", "command": deaf}
    await client.server.call("PUT", "/api/agents/deaf", 200, json=body)
    await client.spawn("pty", agentId="deaf")
    await client.spawn("acp")
    await client.spawn("crashing", agentId="crashing")
    before = await facts_of(client)

    await client.send("agent:message", role="crashing", content="[[crash]]")
    await client.wait_for_notice("error", role="crashing")
    after = await facts_of(client)
    assert (after["acp"], after["pty"]) == (before["acp"], before["pty"])
    assert (await client.session())["status"] == "active"

    await client.spawn("crashing", agentId="crashing")
    again = (await facts_of(client))["crashing"]
    assert (again["id"], again["run"]) == (before["crashing"]["id"], 2)
    await client.exchange("crashing", "[[chunk back]]", "back")

    assert (await client.terminate_session())["agentsTerminated"] == 3
    ended = (await client.session())["workers"]
    assert not any(psutil.pid_exists(worker["pid"]) for worker in ended)


async def facts_of(client: RelayClient) -> dict[str, dict[str, Any]]:
    """What must not change about an agent when another crashes, by role."""
    names = ("id", "pid", "run", "state", "error", "exitCode", "signal")
    workers = (await client.session())["workers"]
    return {worker["role"]: {name: worker[name] for name in names} for worker in workers}


async def terminal_with(client: RelayClient, role: str, command: str, flag: Path) -> dict[str, Any]:
    """A terminal in which a command has come so far that its flag is up."""
    worker = await client.server.new_terminal(client.session_id, role=role)
    async with client.server.socket(f"/ws/session/{client.session_id}/worker/{worker['id']}") as ws:
        await ws.send(json.dumps({"type": "input", "data": f"{command}\r"}))
        async with asyncio.timeout(30):
            while not flag.with_suffix(".up").exists():
                await asyncio.sleep(0.02)
    return worker
