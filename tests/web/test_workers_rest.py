"""Workers over REST and over sockets: types, activity, output, restart and removal."""

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
async def conversation(shared_server: Server) -> AsyncIterator[SessionClient]:
    await define_scripted(shared_server)
    conversation = await SessionClient.begin(shared_server, title="workers")
    yield conversation
    await shared_server.call("DELETE", conversation.path)


async def frames(
    conversation: SessionClient, worker_id: str, *sent: dict[str, Any], until: str
) -> list[dict[str, Any]]:
    """Send frames to the socket of a terminal; return all received frames up to one of the type `until`.

    The first one is the history. The frames are sent after it, so it does not contain their effects.
    """
    async with conversation.server.socket(f"/ws/session/{conversation.id}/worker/{worker_id}") as ws:
        async with asyncio.timeout(30):
            seen: list[dict[str, Any]] = [json.loads(await ws.recv())]
            for frame in sent:
                await ws.send(json.dumps(frame))
            while seen[-1]["type"] != until:
                seen.append(json.loads(await ws.recv()))
    return seen


async def test_the_history_of_a_terminal_stays_within_1_mb_whatever_its_colours(
    conversation: SessionClient,
) -> None:
    cell = "f'\\x1b[48;2;{n % 256};{x};{n // 256}m\\x1b[38;2;{x};7;7m{x % 10}'"
    script = f"for n in range(1500): print(*({cell} for x in range(79)), sep='')"
    command = ["python3", "-c", f"{script}\nprint('\\x1b[0mthe end')"]
    worker = await conversation.server.new_terminal(conversation.id, command=command)
    await conversation.server.worker_in(conversation.id, worker["id"], "exited")
    recorded = await conversation.server.http.get(f"{conversation.path}/workers/{worker['id']}/output")
    assert len(recorded.content) > 3_000_000
    history = (await frames(conversation, worker["id"], until="history"))[-1]
    assert 500_000 < len(history["data"].encode()) <= 1_000_000
    assert "the end" in history["data"]


async def test_a_session_without_an_agent_is_idle_and_has_the_status_of_its_first_agent_otherwise(
    shared_server: Server,
) -> None:
    await define_scripted(shared_server)
    session = await shared_server.new_session()
    await shared_server.new_terminal(session["id"])
    conversation = SessionClient(shared_server, session)

    async def status() -> str:
        shown: dict[str, str] = await shared_server.call("GET", conversation.path)
        listed = (await shared_server.call("GET", "/api/sessions?limit=1"))["sessions"][0]
        assert (listed["id"], listed["agentStatus"]) == (session["id"], shown["agentStatus"])
        return shown["agentStatus"]

    assert (session["agentStatus"], await status()) == ("idle", "idle")
    body = {"type": "agent", "agentId": "scripted"}
    agent = await shared_server.call("POST", f"{conversation.path}/workers", 201, json=body)
    assert agent["status"] == "starting"
    await conversation.wait_for_event("worker_activity", activity="idle")
    assert await status() == "connected"
    await conversation.prompt("[[wait_cancel]]")
    await conversation.wait_for_event("worker_activity", activity="active")
    assert await status() == "running"
    await shared_server.call("DELETE", f"{conversation.path}/workers/{agent['id']}", 200)
    assert await status() == "idle"
    await shared_server.call("DELETE", conversation.path)


async def test_there_are_five_types_of_workers() -> None:
    assert set(WORKER_TYPES) == {"agent", "terminal", "diff", "markdown", "web"}


async def test_the_activity_of_an_acp_agent_follows_its_conversation(conversation: SessionClient) -> None:
    await conversation.prompt("[[permission]]")
    permission = await conversation.open_permission()
    assert (await conversation.worker())["activity"] == "asking"
    await conversation.server.call(
        "POST", f"{conversation.path}/permissions/{permission['id']}", 204, json={"optionId": "yes"}
    )
    end = await conversation.wait_for_event("turn_end")
    await conversation.wait_for_event("worker_activity", after=end["seq"] - 1, activity="idle")
    assert (await conversation.worker())["activity"] == "idle"


@pytest_asyncio.fixture(loop_scope="session")
async def own_server(tmp_path: Path) -> AsyncIterator[Server]:
    """A server for one test, which may kill it."""
    (tmp_path / "workspace").mkdir()
    server = Server(tmp_path / "home", tmp_path / "workspace")
    await server.start()
    yield server
    await server.close()


async def test_sessions_and_workers_survive_a_restart_of_the_server(own_server: Server) -> None:
    server = own_server
    await define_scripted(server)
    conversation = await SessionClient.begin(server)
    terminal = await server.new_terminal(conversation.id)
    before = (await server.call("GET", f"{conversation.path}/workers"))["workers"]
    await server.restart()
    after = (await server.call("GET", f"{conversation.path}/workers"))["workers"]
    assert [(w["id"], w["pid"], w["state"]) for w in after] == [
        (w["id"], w["pid"], w["state"]) for w in before
    ]
    assert psutil.pid_exists(terminal["pid"])


async def test_a_terminal_shows_typed_input_and_its_history_after_a_reload(
    conversation: SessionClient,
) -> None:
    terminal = await conversation.server.new_terminal(conversation.id, role="reload")
    typed = {"type": "input", "data": "stty size; echo he''llo; exit\r"}
    first = await frames(
        conversation, terminal["id"], {"type": "resize", "cols": 93, "rows": 31}, typed, until="exit"
    )
    assert first[0]["type"] == "history"
    output = "".join(frame["data"] for frame in first if frame["type"] == "output")
    assert "31 93" in output
    (exit,) = [frame for frame in first if frame["type"] == "exit"]
    assert (exit["exitCode"], exit["signal"]) == (0, None)
    reloaded = await frames(conversation, terminal["id"], until="exit")
    assert "hello" in reloaded[0]["data"]


async def test_the_sockets_have_their_documented_paths(conversation: SessionClient) -> None:
    terminal = await conversation.server.new_terminal(conversation.id, role="addressed")
    assert (await frames(conversation, terminal["id"], until="history"))[-1]["type"] == "history"
    async with conversation.server.socket("/ws/dashboard") as ws:
        assert json.loads(await ws.recv())["type"] == "sessions"


async def test_a_running_agent_is_restarted_with_or_without_its_conversation(
    conversation: SessionClient,
) -> None:
    await conversation.run_turn("[[chunk remembered]]")
    before = await conversation.worker()
    await conversation.server.call(
        "POST", f"{conversation.path}/restart", 200, json={"continueConversation": True}
    )
    resumed = await conversation.wait_for_event("agent_session", how="resume")
    assert not psutil.pid_exists(before["pid"])
    await conversation.server.call(
        "POST", f"{conversation.path}/restart", 200, json={"continueConversation": False}
    )
    await conversation.wait_for_event("agent_session", after=resumed["seq"], how="new")
    assert (await conversation.worker())["run"] == 3


async def test_workers_are_listed_with_their_pids_and_deleted(conversation: SessionClient) -> None:
    terminal = await conversation.server.new_terminal(conversation.id, role="listed")
    workers = (await conversation.server.call("GET", f"{conversation.path}/workers"))["workers"]
    assert all(psutil.pid_exists(worker["pid"]) for worker in workers)
    listed = await Bullpen(conversation.server.environment())("worker", "ls", conversation.id)
    assert str(terminal["pid"]) in listed.out
    await conversation.server.call("DELETE", f"{conversation.path}/workers/{terminal['id']}")
    assert not psutil.pid_exists(terminal["pid"])


async def test_an_agent_id_creates_the_primary_agent_which_may_continue_a_conversation(
    conversation: SessionClient,
) -> None:
    before = await conversation.wait_for_event("agent_session")
    other = SessionClient(
        conversation.server,
        await conversation.server.new_session(agentId="scripted", continueConversation=True),
    )
    worker = await other.worker()
    assert (worker["type"], worker["agentId"]) == ("agent", "scripted")
    continued = await other.wait_for_event("agent_session", how="continue")
    assert continued["data"]["acpSessionId"] == before["data"]["acpSessionId"]
    await conversation.server.call("DELETE", other.path)


async def test_any_agent_of_a_session_can_be_restarted_while_it_runs(conversation: SessionClient) -> None:
    body = {"type": "agent", "agentId": "scripted", "role": "second"}
    second = await conversation.server.call("POST", f"{conversation.path}/workers", 201, json=body)
    second = await conversation.server.worker_in(conversation.id, second["id"], "active")
    path = f"{conversation.path}/workers/{second['id']}/restart"
    await conversation.server.call("POST", path, 409)
    await conversation.server.call("POST", path, 200, json={"continueConversation": False})
    restarted = await conversation.server.worker_in(conversation.id, second["id"], "active")
    assert (restarted["run"], restarted["pid"] != second["pid"]) == (2, True)
    reset = await conversation.wait_for_event("conversation_reset")
    assert reset["workerId"] == second["id"]
    bullpen = Bullpen(conversation.server.environment())
    done = await bullpen("restart", f"{conversation.id}/second")
    assert (done.code, "restarted" in done.out) == (0, True)
    terminal = await conversation.server.new_terminal(conversation.id, role="no agent")
    refused = await conversation.server.call(
        "POST",
        f"{conversation.path}/workers/{terminal['id']}/restart",
        409,
        json={"continueConversation": True},
    )
    assert "not an agent" in refused["message"]


@pytest.mark.parametrize("path", ["", "/worker/{worker}"], ids=["events", "terminal"])
async def test_the_sockets_of_a_purged_session_are_closed_with_not_found(
    shared_server: Server, path: str
) -> None:
    session = await shared_server.call("POST", "/api/sessions", json={"type": "quick"})
    workers = f"/api/sessions/{session['id']}/workers"
    worker = (await shared_server.call("POST", workers, json={"type": "terminal"}))["id"]
    async with shared_server.socket(f"/ws/session/{session['id']}{path.format(worker=worker)}") as ws:
        if not path:
            await ws.send('{"type": "subscribe", "after": 0}')
        await ws.recv()
        await shared_server.call("DELETE", f"/api/sessions/{session['id']}?purge=true")
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(30):
                while True:
                    await ws.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4404
