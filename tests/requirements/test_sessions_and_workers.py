"""Document 004, sessions and workers: requirements 70 to 83."""

import asyncio
import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.async_api import BrowserContext, expect

from bullpen.workers.kinds import KINDS
from support.pages import TerminalPage
from support.pictures import png
from support.server import Server
from support.session_client import SessionClient
from support.tui_session_client import TuiSessionClient, define_tui

pytestmark = pytest.mark.asyncio(loop_scope="session")

CREATED = "2025-01-01T00:00:00.000Z"


async def create(server: Server, **body: Any) -> dict[str, Any]:
    session: dict[str, Any] = await server.call("POST", "/api/sessions", 201, json=body)
    return session


async def add(server: Server, session: dict[str, Any], **body: Any) -> dict[str, Any]:
    worker: dict[str, Any] = await server.call(
        "POST", f"/api/sessions/{session['id']}/workers", 201, json=body
    )
    return await server.worker_in(session["id"], worker["id"], "active")


async def end(server: Server, session: dict[str, Any]) -> None:
    await server.call("DELETE", f"/api/sessions/{session['id']}", 200)


class WorkerSocket:
    """The socket of one worker, and the messages that it has received."""

    def __init__(self, server: Server, worker: dict[str, Any]) -> None:
        self._path = f"/ws/session/{worker['sessionId']}/worker/{worker['id']}"
        self._server = server

    async def exchange(self, *sent: dict[str, Any], text: str = "", **until: Any) -> list[dict[str, Any]]:
        """Send messages; return the received ones up to one with the fields `until`, or up to this text."""
        received: list[dict[str, Any]] = []
        async with self._server.socket(self._path) as ws, asyncio.timeout(60):
            for message in sent:
                await ws.send(json.dumps(message))
            while not received or not (
                text in terminal_text(received) if text else until.items() <= received[-1].items()
            ):
                received.append(json.loads(await ws.recv()))
        return received


def terminal_text(received: list[dict[str, Any]]) -> str:
    return "".join(each["data"] for each in received if each["type"] in ("history", "output"))


async def test_r70_there_are_worktree_and_quick_sessions(shared: Server, repo: dict[str, Any]) -> None:
    body = {
        "type": "worktree",
        "repositoryId": repo["id"],
        "worktreeId": "main",
        "locationPath": repo["path"],
    }
    in_worktree = await create(shared, **body)
    assert (in_worktree["repoId"], in_worktree["worktreeId"]) == (repo["id"], "main")
    quick = await create(shared, type="quick", locationPath=str(shared.workspace))
    assert (quick["repoId"], quick["locationPath"], quick["workers"]) == (None, str(shared.workspace), [])


async def test_r71_there_are_five_types_of_workers_and_a_new_one_is_one_entry(
    shared: Server, repo: dict[str, Any]
) -> None:
    session = await create(shared, type="worktree", repositoryId=repo["id"])
    (Path(session["locationPath"]) / "notes.md").write_text("# Notes")
    details: dict[str, dict[str, Any]] = {
        "agent": {"agentId": "scripted"},
        "terminal": {},
        "diff": {},
        "markdown": {"filePath": "notes.md"},
        "web": {"url": "http://localhost:5173/"},
    }
    assert set(KINDS) == set(details)
    commit = ["git", "-C", repo["path"], "commit", "-q", "--allow-empty", "-m", "base"]
    subprocess.run(commit, check=True)
    for type, more in details.items():
        assert (await add(shared, session, type=type, name=f"My {type}", **more))["name"] == f"My {type}"
    await end(shared, session)


async def test_r72_the_activity_of_agents_comes_from_their_output_or_the_protocol(shared: Server) -> None:
    await define_tui(shared)
    in_terminal = await TuiSessionClient.begin(shared)
    await in_terminal.prompt("[[work 0.3]] [[ask]]")
    for activity in ("active", "asking"):
        await in_terminal.wait_for_activity(activity)
    over_acp = await SessionClient.begin(shared)
    await over_acp.prompt("[[permission]]")
    await over_acp.open_permission()
    await over_acp.wait_for_event("worker_activity", activity="asking")
    for talk in (in_terminal, over_acp):
        await shared.call("DELETE", talk.path, 200)


async def test_r73_sessions_and_workers_survive_a_restart_of_the_server(shared: Server) -> None:
    session = await create(shared, type="quick", agentId="scripted")
    terminal = await add(shared, session, type="terminal")
    agent = await shared.worker_in(session["id"], session["workers"][0]["id"], "active")
    await shared.restart()
    for worker in (terminal, agent):
        now = await shared.worker_in(session["id"], worker["id"], "active")
        assert (now["pid"], now["run"]) == (worker["pid"], 1)
        assert psutil.pid_exists(now["pid"])
    await end(shared, session)


async def test_r74_a_reload_of_the_page_keeps_every_worker_and_its_screen(
    shared: Server, device: BrowserContext
) -> None:
    session = await create(shared, type="quick")
    workers = [await add(shared, session, type="terminal", name=name) for name in ("First", "Second")]
    page = await device.new_page()
    await page.goto(f"{shared.url}/#/session/{session['id']}")
    terminal = TerminalPage(page)
    for worker in workers:
        await page.get_by_role("tab", name=worker["name"]).click()
        await terminal.run(f"echo kept-$((40 + 2))-{worker['role']}")
        await terminal.wait_for_text(f"kept-42-{worker['role']}")
    await page.reload()
    await expect(page.get_by_role("tab")).to_have_count(len(workers))
    for worker in workers:
        await page.get_by_role("tab", name=worker["name"]).click()
        await terminal.wait_for_text(f"kept-42-{worker['role']}")
        assert await shared.worker_in(session["id"], worker["id"], "active") == worker
    await page.close()
    await end(shared, session)


async def test_r75_there_are_sockets_for_a_worker_and_for_the_dashboard(shared: Server) -> None:
    session = await create(shared, type="quick")
    worker = await add(shared, session, type="terminal")
    assert await WorkerSocket(shared, worker).exchange(type="history")
    async with shared.socket("/ws/dashboard") as ws, asyncio.timeout(30):
        first = json.loads(await ws.recv())
    assert session["id"] in [each["id"] for each in first["sessions"]]
    await end(shared, session)


async def test_r76_a_client_sends_input_resize_and_image(shared: Server) -> None:
    session = await create(shared, type="quick")
    worker = await add(shared, session, type="terminal")
    resize = {"type": "resize", "cols": 101, "rows": 33}
    typed = {"type": "input", "data": "stty size\r"}
    received = await WorkerSocket(shared, worker).exchange(resize, typed, text="33 101")
    assert "33 101" in terminal_text(received)
    image = {"type": "image", "data": base64.b64encode(png()).decode(), "mimeType": "image/png"}
    received = await WorkerSocket(shared, worker).exchange(image, text=".png")
    assert "/images/" in terminal_text(received).replace("\r", "").replace("\n", "")
    await end(shared, session)


async def test_r77_the_server_sends_output_exit_history_and_activity(shared: Server) -> None:
    session = await create(shared, type="quick")
    worker = await add(shared, session, type="terminal")
    received = await WorkerSocket(shared, worker).exchange(
        {"type": "input", "data": "echo he''llo; exit 3\r"}, type="exit"
    )
    assert received[0]["type"] == "history"
    assert "hello" in terminal_text(received)
    assert (received[-1]["exitCode"], received[-1]["signal"]) == (3, None)
    await end(shared, session)
    await define_tui(shared)
    in_terminal = await TuiSessionClient.begin(shared)
    socket = WorkerSocket(shared, await in_terminal.worker())
    await socket.exchange({"type": "input", "data": "[[ask]]\r"}, type="activity", state="asking")
    await socket.exchange({"type": "input", "data": "y"}, type="activity", state="idle")
    await shared.call("DELETE", in_terminal.path, 200)


async def test_r78_sessions_are_created_listed_read_deleted_and_restarted(shared: Server) -> None:
    session = await create(shared, type="quick", agentId="scripted")
    talk = SessionClient(shared, session)
    await talk.wait_for_event("agent_session")
    listed = (await shared.call("GET", "/api/sessions", 200))["sessions"]
    assert session["id"] in [each["id"] for each in listed]
    assert len((await shared.call("GET", talk.path, 200))["workers"]) == 1
    restarted = await shared.call("POST", f"{talk.path}/restart", 200, json={"continueConversation": True})
    assert (restarted["id"], restarted["run"]) == (session["workers"][0]["id"], 2)
    await shared.call("DELETE", f"{talk.path}?purge=true", 200)
    await shared.call("GET", talk.path, 404)


async def test_r79_workers_are_listed_created_and_deleted(shared: Server) -> None:
    session = await create(shared, type="quick")
    workers = f"/api/sessions/{session['id']}/workers"
    worker = await add(shared, session, type="terminal", name="Terminal 1")
    assert (await shared.call("GET", workers, 200))["workers"] == [worker]
    assert {"id", "type", "name", "createdAt"} <= set(worker)
    await shared.call("DELETE", f"{workers}/{worker['id']}", 200)
    assert not psutil.pid_exists(worker["pid"])
    await end(shared, session)


async def test_r80_an_agent_id_starts_the_primary_agent_which_may_continue(shared: Server) -> None:
    place = {"type": "quick", "locationPath": str(shared.workspace), "agentId": "scripted"}
    first = SessionClient(shared, await create(shared, **place))
    conversation = (await first.wait_for_event("agent_session"))["data"]["acpSessionId"]
    await first.run_turn("[[chunk hello]]")
    await shared.call("DELETE", first.path, 200)
    second = SessionClient(shared, await create(shared, **place, continueConversation=True))
    continued = await second.wait_for_event("agent_session", acpSessionId=conversation)
    assert continued["data"]["how"] != "new"
    assert [each["type"] for each in (await shared.call("GET", second.path))["workers"]] == ["agent"]
    await shared.call("DELETE", second.path, 200)


async def test_r81_a_client_has_the_fourteen_operations_of_the_session_manager(shared: Server) -> None:
    """In the order of the document; the comment of a line is the name of the operation there."""
    session = await create(shared, type="quick", agentId="scripted")  # createSession
    path = f"/api/sessions/{session['id']}"
    assert (await shared.call("GET", path, 200))["id"] == session["id"]  # getSession
    listed = (await shared.call("GET", "/api/sessions", 200))["sessions"]  # getAllSessions
    assert session["id"] in [each["id"] for each in listed]
    worker = await add(shared, session, type="terminal")  # createWorker
    own = f"{path}/workers/{worker['id']}"
    assert (await shared.call("GET", own, 200))["pid"] == worker["pid"]  # getWorker
    async with shared.socket(f"/ws/session/{session['id']}/worker/{worker['id']}") as ws:
        received = [json.loads(await ws.recv())]  # attachWorkerCallbacks
        await ws.send(json.dumps({"type": "resize", "cols": 101, "rows": 33}))  # resizeWorker
        await ws.send(json.dumps({"type": "input", "data": "stty size\r"}))  # writeWorkerInput
        async with asyncio.timeout(60):
            while "33 101" not in terminal_text(received):
                received.append(json.loads(await ws.recv()))
    # detachWorkerCallbacks: the socket is closed, and the worker goes on
    output = await shared.http.get(f"{own}/output")  # getWorkerOutputBuffer
    assert "33 101" in output.text
    assert (await shared.worker_in(session["id"], worker["id"], "active"))["pid"] == worker["pid"]
    agent = await shared.worker_in(session["id"], session["workers"][0]["id"], "active")
    assert agent["activity"] == "idle"  # getWorkerActivityState
    restart = f"{path}/workers/{agent['id']}/restart"
    restarted = await shared.call("POST", restart, 200, json={"continueConversation": True})
    assert restarted["run"] == agent["run"] + 1  # restartAgentWorker
    await shared.call("DELETE", own, 200)  # deleteWorker
    assert not psutil.pid_exists(worker["pid"])
    assert (await shared.call("DELETE", path, 200))["status"] == "cancelled"  # deleteSession


async def test_r82_both_formats_of_sessions_json_are_imported(shared: Server) -> None:
    directory = str(shared.workspace)
    worker = {"id": "w", "type": "terminal", "name": "Terminal 1", "pid": 1, "createdAt": CREATED}
    new = {"id": "new", "type": "quick", "locationPath": directory, "serverPid": 1, "createdAt": CREATED}
    old = {"id": "old", "worktreePath": directory, "repositoryId": "default", "pid": 1, "createdAt": CREATED}
    for _ in range(2):  # importing again succeeds
        imported = await shared.call("POST", "/api/import", 200, json=[new | {"workers": [worker]}, old])
        assert (imported["left"], [each["id"] for each in imported["taken"]]) == ([], ["new", "old"])
    sessions = [await shared.call("GET", f"/api/sessions/{each['sessionId']}") for each in imported["taken"]]
    assert [each["createdAt"] for each in sessions] == [CREATED] * 2
    assert [each["workers"][0]["type"] for each in sessions] == ["terminal", "agent"]
    assert sessions[1]["workers"][0]["agentId"] == "claude-tui"


async def test_r83_a_diff_worker_shows_the_changes_of_a_workspace(
    shared: Server, repo: dict[str, Any]
) -> None:
    git = ["git", "-C", repo["path"]]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "base"], check=True)
    session = await create(shared, type="worktree", repositoryId=repo["id"])
    await add(shared, session, type="diff")
    (Path(repo["path"]) / "changed.txt").write_text("new\n")
    talk = SessionClient(shared, session)
    async with asyncio.timeout(60):
        while "changed.txt" not in json.dumps(
            [each["data"] for each in await talk.events() if each["type"] == "diff_changed"]
        ):
            await asyncio.sleep(0.05)
    diff = await shared.call("GET", f"{talk.path}/diff", 200)
    assert "changed.txt" in [each["path"] for each in diff["files"]]
    await end(shared, session)
