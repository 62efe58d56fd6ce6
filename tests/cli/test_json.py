"""Verbs that change something print the answer of the server as JSON."""

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


async def run_json(bullpen: Bullpen, *arguments: str) -> Any:
    done = await bullpen(*arguments, "--json")
    assert (done.code, done.err) == (0, ""), done
    return json.loads(done.out)


async def test_a_script_can_send_or_remove_a_message_that_it_queued(
    bullpen: Bullpen, talk: SessionClient
) -> None:
    await bullpen("queue", "pause", "work")
    first = await run_json(bullpen, "queue", "add", "work", "first", "--title", "One", "--at", "23:59")
    assert (first["message"], first["title"], first["state"]) == ("first", "One", "queued")
    assert first["scheduled_time"] is not None
    second = await bullpen("queue", "add", "work", "[[chunk second]]", "-q")
    assert [each["id"] for each in (await run_json(bullpen, "queue", "ls", "work"))["messages"]] == [
        first["id"],
        second.out.strip(),
    ]
    assert (await bullpen("queue", "rm", "work", first["id"])).code == 0
    assert (await bullpen("queue", "now", "work", second.out.strip())).code == 0
    await talk.wait_for_event("turn_start", promptId=second.out.strip())


async def test_cancel_prints_the_worker_whose_turn_it_cancelled(
    bullpen: Bullpen, talk: SessionClient
) -> None:
    agent = (await talk.worker())["id"]
    idle = {"sessionId": talk.id, "workerId": agent, "cancelled": False}
    assert await run_json(bullpen, "cancel", "work") == idle
    await talk.prompt("[[wait_cancel]]")
    await talk.wait_for_event("turn_start")
    assert await run_json(bullpen, "cancel", "work/scripted") == idle | {"cancelled": True}


async def test_cancel_prints_that_a_session_without_an_agent_has_no_turn(
    bullpen: Bullpen, server: Server
) -> None:
    session = await server.new_session(title="empty")
    assert await run_json(bullpen, "cancel", "empty") == {
        "sessionId": session["id"],
        "workerId": None,
        "cancelled": False,
    }


async def test_stop_prints_the_sessions_and_workers_it_ended(bullpen: Bullpen, server: Server) -> None:
    sessions = [await server.new_session(title=title) for title in ("one", "two")]
    worker = await server.new_terminal(sessions[1]["id"])
    stopped = await run_json(bullpen, "stop", "one", "two/terminal")
    assert [(each["id"], each["status"]) for each in stopped["sessions"]] == [
        (sessions[0]["id"], "completed")
    ]
    assert [(each["id"], each["state"]) for each in stopped["workers"]] == [(worker["id"], "terminated")]
    again = await run_json(bullpen, "stop", "one")
    assert ([each["status"] for each in again["sessions"]], again["workers"]) == (["completed"], [])


async def test_rm_prints_the_session_it_cancelled_or_purged(bullpen: Bullpen, server: Server) -> None:
    session = await server.new_session(title="one")
    for options in ((), (), ("--purge", "--yes")):
        (gone,) = (await run_json(bullpen, "rm", "one", *options))["sessions"]
        assert (gone["id"], gone["status"]) == (session["id"], "cancelled")
    assert (await server.call("GET", "/api/sessions"))["total"] == 0


@pytest.mark.parametrize("target", ["work", "work/scripted"])
async def test_restart_prints_the_agent_it_restarted(
    bullpen: Bullpen, talk: SessionClient, target: str
) -> None:
    agent = await talk.worker()
    left = await run_json(bullpen, "restart", target, "--if-ended")
    assert (left["id"], left["run"]) == (agent["id"], 1)
    again = await run_json(bullpen, "restart", target)
    assert (again["id"], again["run"]) == (agent["id"], 2)
    assert (await bullpen("restart", target, "--if-ended", "-q")).out.strip() == agent["id"]


async def test_rules_add_prints_the_rule_as_it_is_listed(bullpen: Bullpen) -> None:
    rule = await run_json(bullpen, "rules", "add", "reading", "--agent", "demo", "--kind", "read")
    assert rule["name"] == "reading"
    assert rule in (await run_json(bullpen, "rules", "ls"))["rules"]
