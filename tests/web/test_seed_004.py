"""Seed 004 by number, as far as no other page of tests has it: sessions, workers and their operations."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from websockets.exceptions import ConnectionClosed

from bullpen.domain.commands import WORKER_TYPES
from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient, define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def talk(house: Server) -> AsyncIterator[SessionClient]:
    await define_scripted(house)
    talk = await SessionClient.begin(house, title="seed 004")
    yield talk
    await house.call("DELETE", talk.path)


async def frames(
    talk: SessionClient, worker_id: str, *sent: dict[str, Any], until: str
) -> list[dict[str, Any]]:
    """All a terminal's socket says until a frame of a type comes."""
    seen: list[dict[str, Any]] = []
    async with talk.server.socket(f"/ws/session/{talk.id}/worker/{worker_id}?format=json") as ws:
        for frame in sent:
            await ws.send(json.dumps(frame))
        async with asyncio.timeout(30):
            while not seen or seen[-1]["type"] != until:
                seen.append(json.loads(await ws.recv()))
    return seen


async def test_r71_there_are_four_types_of_workers() -> None:
    assert set(WORKER_TYPES) == {"agent", "terminal", "diff", "markdown"}


async def test_r72_an_acp_agents_activity_follows_its_conversation(talk: SessionClient) -> None:
    await talk.prompt("[[permission]]")
    permission = await talk.open_permission()
    assert (await talk.worker())["activity"] == "asking"
    await talk.server.call(
        "POST", f"{talk.path}/permissions/{permission['id']}", 204, json={"optionId": "yes"}
    )
    end = await talk.wait_for_event("turn_end")
    await talk.wait_for_event("worker_activity", after=end["seq"] - 1, activity="idle")
    assert (await talk.worker())["activity"] == "idle"


@pytest_asyncio.fixture(loop_scope="session")
async def mortal(tmp_path: Path) -> AsyncIterator[Server]:
    """A server that may be killed."""
    (tmp_path / "workspace").mkdir()
    server = Server(tmp_path / "home", tmp_path / "workspace")
    await server.start()
    yield server
    await server.close()


async def test_r73_sessions_and_workers_survive_a_restart_of_the_server(mortal: Server) -> None:
    server = mortal
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    terminal = await server.new_terminal(talk.id)
    before = (await server.call("GET", f"{talk.path}/workers"))["workers"]
    await server.restart()
    after = (await server.call("GET", f"{talk.path}/workers"))["workers"]
    assert [(w["id"], w["pid"], w["state"]) for w in after] == [
        (w["id"], w["pid"], w["state"]) for w in before
    ]
    assert psutil.pid_exists(terminal["pid"])


async def test_r74_r76_r77_a_reload_finds_the_screen_and_what_is_typed_is_put_out(
    talk: SessionClient,
) -> None:
    terminal = await talk.server.new_terminal(talk.id, role="reload")
    typed = {"type": "input", "data": "stty size; echo he''llo; exit\r"}
    first = await frames(
        talk, terminal["id"], {"type": "resize", "cols": 93, "rows": 31}, typed, until="exit"
    )
    assert first[0]["type"] == "history"
    said = "".join(frame["data"] for frame in first if frame["type"] == "output")
    assert "31 93" in said
    (exit,) = [frame for frame in first if frame["type"] == "exit"]
    assert (exit["exitCode"], exit["signal"]) == (0, None)
    reloaded = await frames(talk, terminal["id"], until="exit")
    assert "hello" in reloaded[0]["data"]


async def test_r75_the_sockets_have_these_addresses(talk: SessionClient) -> None:
    terminal = await talk.server.new_terminal(talk.id, role="addressed")
    assert (await frames(talk, terminal["id"], until="history"))[-1]["type"] == "history"
    async with talk.server.socket("/ws/dashboard") as ws:
        assert json.loads(await ws.recv())["type"] == "sessions"


async def test_r78_a_living_agent_is_restarted_with_its_conversation_or_without(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk remembered]]")
    before = await talk.worker()
    await talk.server.call("POST", f"{talk.path}/restart", 200, json={"continueConversation": True})
    resumed = await talk.wait_for_event("agent_session", how="resume")
    assert not psutil.pid_exists(before["pid"])
    await talk.server.call("POST", f"{talk.path}/restart", 200, json={"continueConversation": False})
    await talk.wait_for_event("agent_session", after=resumed["seq"], how="new")
    assert (await talk.worker())["run"] == 3


async def test_r79_workers_are_listed_with_their_pids_and_deleted(talk: SessionClient) -> None:
    terminal = await talk.server.new_terminal(talk.id, role="listed")
    workers = (await talk.server.call("GET", f"{talk.path}/workers"))["workers"]
    assert all(psutil.pid_exists(worker["pid"]) for worker in workers)
    listed = await Bullpen(talk.server.environment())("worker", "ls", talk.id)
    assert str(terminal["pid"]) in listed.out
    await talk.server.call("DELETE", f"{talk.path}/workers/{terminal['id']}")
    assert not psutil.pid_exists(terminal["pid"])


async def test_r80_an_agent_id_makes_the_primary_worker_which_may_continue_a_conversation(
    talk: SessionClient,
) -> None:
    before = await talk.wait_for_event("agent_session")
    other = SessionClient(
        talk.server, await talk.server.new_session(agentId="scripted", continueConversation=True)
    )
    worker = await other.worker()
    assert (worker["type"], worker["agentId"]) == ("agent", "scripted")
    continued = await other.wait_for_event("agent_session", how="continue")
    assert continued["data"]["acpSessionId"] == before["data"]["acpSessionId"]
    await talk.server.call("DELETE", other.path)


async def test_r81_any_agent_of_a_session_is_restarted_while_it_lives(talk: SessionClient) -> None:
    body = {"type": "agent", "agentId": "scripted", "role": "second"}
    second = await talk.server.call("POST", f"{talk.path}/workers", 201, json=body)
    second = await talk.server.worker_in(talk.id, second["id"], "active")
    path = f"{talk.path}/workers/{second['id']}/restart"
    await talk.server.call("POST", path, 409)
    await talk.server.call("POST", path, 200, json={"continueConversation": False})
    again = await talk.server.worker_in(talk.id, second["id"], "active")
    assert (again["run"], again["pid"] != second["pid"]) == (2, True)
    reset = await talk.wait_for_event("conversation_reset")
    assert reset["workerId"] == second["id"]
    bullpen = Bullpen(talk.server.environment())
    done = await bullpen("restart", f"{talk.id}/second")
    assert (done.code, "restarted" in done.out) == (0, True)
    terminal = await talk.server.new_terminal(talk.id, role="no agent")
    refused = await talk.server.call(
        "POST", f"{talk.path}/workers/{terminal['id']}/restart", 409, json={"continueConversation": True}
    )
    assert "not an agent" in refused["message"]


@pytest.mark.parametrize("path", ["", "/worker/{worker}"], ids=["events", "terminal"])
async def test_who_looks_at_a_session_that_is_purged_is_told_that_it_is_gone(
    house: Server, path: str
) -> None:
    session = await house.call("POST", "/api/sessions", json={"type": "quick"})
    workers = f"/api/sessions/{session['id']}/workers"
    worker = (await house.call("POST", workers, json={"type": "terminal"}))["id"]
    async with house.socket(f"/ws/session/{session['id']}{path.format(worker=worker)}") as looking:
        if not path:
            await looking.send('{"type": "subscribe", "after": 0}')
        await looking.recv()
        await house.call("DELETE", f"/api/sessions/{session['id']}?purge=true")
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(30):
                while True:
                    await looking.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4404
