"""What the verbs that change something tell scripts: what the server answered."""

import json
from typing import Any

import pytest

from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient, define_scripted


@pytest.fixture
async def talk(server: Server) -> SessionClient:
    await define_scripted(server)
    return await SessionClient.begin(server, title="work")


async def told(bullpen: Bullpen, *arguments: str) -> Any:
    done = await bullpen(*arguments, "--json")
    assert (done.code, done.err) == (0, ""), done
    return json.loads(done.out)


async def test_what_a_script_has_queued_it_can_send_and_take_back(
    bullpen: Bullpen, talk: SessionClient
) -> None:
    await bullpen("queue", "pause", "work")
    first = await told(bullpen, "queue", "add", "work", "first", "--title", "One", "--at", "23:59")
    assert (first["message"], first["title"], first["state"]) == ("first", "One", "queued")
    assert first["scheduled_time"] is not None
    second = await bullpen("queue", "add", "work", "[[chunk second]]", "-q")
    assert [each["id"] for each in (await told(bullpen, "queue", "ls", "work"))["messages"]] == [
        first["id"],
        second.out.strip(),
    ]
    assert (await bullpen("queue", "rm", "work", first["id"])).code == 0
    assert (await bullpen("queue", "now", "work", second.out.strip())).code == 0
    await talk.wait_for_event("turn_start", promptId=second.out.strip())


async def test_cancel_tells_whose_turn_it_cancelled(bullpen: Bullpen, talk: SessionClient) -> None:
    agent = (await talk.worker())["id"]
    idle = {"sessionId": talk.id, "workerId": agent, "cancelled": False}
    assert await told(bullpen, "cancel", "work") == idle
    await talk.prompt("[[wait_cancel]]")
    await talk.wait_for_event("turn_start")
    assert await told(bullpen, "cancel", "work/scripted") == idle | {"cancelled": True}


async def test_cancel_tells_when_there_is_nobody_to_cancel(bullpen: Bullpen, server: Server) -> None:
    session = await server.new_session(title="empty")
    assert await told(bullpen, "cancel", "empty") == {
        "sessionId": session["id"],
        "workerId": None,
        "cancelled": False,
    }


async def test_stop_tells_what_it_ended(bullpen: Bullpen, server: Server) -> None:
    sessions = [await server.new_session(title=title) for title in ("one", "two")]
    worker = await server.new_terminal(sessions[1]["id"])
    stopped = await told(bullpen, "stop", "one", "two/terminal")
    assert [(each["id"], each["status"]) for each in stopped["sessions"]] == [
        (sessions[0]["id"], "completed")
    ]
    assert [(each["id"], each["state"]) for each in stopped["workers"]] == [(worker["id"], "terminated")]
    again = await told(bullpen, "stop", "one")
    assert ([each["status"] for each in again["sessions"]], again["workers"]) == (["completed"], [])


async def test_rm_tells_what_it_cancelled_or_purged(bullpen: Bullpen, server: Server) -> None:
    session = await server.new_session(title="one")
    for options in ((), (), ("--purge", "--yes")):
        (gone,) = (await told(bullpen, "rm", "one", *options))["sessions"]
        assert (gone["id"], gone["status"]) == (session["id"], "cancelled")
    assert (await server.call("GET", "/api/sessions"))["total"] == 0


@pytest.mark.parametrize("target", ["work", "work/scripted"])
async def test_restart_tells_of_the_agent(bullpen: Bullpen, talk: SessionClient, target: str) -> None:
    agent = await talk.worker()
    left = await told(bullpen, "restart", target, "--if-ended")
    assert (left["id"], left["run"]) == (agent["id"], 1)
    again = await told(bullpen, "restart", target)
    assert (again["id"], again["run"]) == (agent["id"], 2)
    assert (await bullpen("restart", target, "--if-ended", "-q")).out.strip() == agent["id"]


async def test_a_rule_that_was_added_is_told_as_it_is_listed(bullpen: Bullpen) -> None:
    rule = await told(bullpen, "rules", "add", "reading", "--agent", "demo", "--kind", "read")
    assert rule["name"] == "reading"
    assert rule in (await told(bullpen, "rules", "ls"))["rules"]
