"""Sessions of a `sessions.json` in the old or new format are imported once, and no program is started."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from bullpen.domain.errors import Invalid
from bullpen.wire.sessions_json import read_saved
from support.commands import Bullpen
from support.server import SECONDS, Server
from support.session_client import define_scripted

TIME = "2025-01-01T00:00:00.000Z"


def worker(id: str, type: str, name: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "type": type, "name": name, "pid": 1, "createdAt": TIME, **more}


def new_entry(id: str, directory: Path, *workers: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an entry of the new format."""
    base = {"id": id, "type": "quick", "locationPath": str(directory), "serverPid": 1, "createdAt": TIME}
    return {**base, "workers": list(workers), **more}


def old_entry(id: str, directory: Path, **more: Any) -> dict[str, Any]:
    """Return an entry of the old format."""
    return {"id": id, "worktreePath": str(directory), "pid": 1, "serverPid": 1, "createdAt": TIME, **more}


async def import_entries(server: Server, *entries: Any) -> dict[str, Any]:
    imported: dict[str, Any] = await server.call("POST", "/api/import", 200, json={"sessions": list(entries)})
    return imported


def test_the_old_format_is_read_as_one_agent_in_a_session(tmp_path: Path) -> None:
    quick, in_worktree = (
        read_saved(old_entry("a", tmp_path)),
        read_saved(old_entry("b", tmp_path, repositoryId="r")),
    )
    assert (quick.type, quick.repository_id, quick.worktree_id) == ("quick", None, None)
    assert (in_worktree.type, in_worktree.repository_id, in_worktree.worktree_id) == (
        "worktree",
        "r",
        str(tmp_path),
    )
    (agent,) = quick.workers
    assert (agent.id, agent.name, agent.agents) == ("a-agent", "Claude", ("claude-tui", "claude"))


@pytest.mark.parametrize("entry", [7, None, [], {}, {"id": 1}, {"id": "x", "type": "quick", "workers": 3}])
def test_an_invalid_entry_is_refused(entry: Any) -> None:
    with pytest.raises(Invalid):
        read_saved(entry)


async def test_sessions_of_both_formats_are_imported_once_and_can_be_restarted(server: Server) -> None:
    await define_scripted(server)
    directory = server.workspace / "project"
    directory.mkdir()
    agent = worker("worker-1", "agent", "Helper", agentId="scripted")
    terminals = [worker("worker-2", "terminal", "Terminal 1"), worker("worker-3", "terminal", "Terminal 1")]
    entries = [
        new_entry("session-1", directory, agent, *terminals),
        old_entry("session-2", directory, repositoryId="default"),
    ]
    before = {child.pid for child in psutil.Process(server.pid).children(recursive=True)}
    imported = await import_entries(server, *entries)
    assert imported["left"] == []
    assert [(each["id"], each["title"], each["workers"]) for each in imported["taken"]] == [
        ("session-1", "project", 3),
        ("session-2", "project", 1),
    ]
    first = await server.call("GET", f"/api/sessions/{imported['taken'][0]['sessionId']}")
    assert [(w["type"], w["role"], w["state"], w["pid"]) for w in first["workers"]] == [
        ("agent", "helper", "exited", None),
        ("terminal", "terminal 1", "exited", None),
        ("terminal", "terminal 1-2", "exited", None),
    ]
    assert {child.pid for child in psutil.Process(server.pid).children(recursive=True)} == before
    events = await server.call("GET", f"/api/sessions/{first['id']}/events?types=session_imported")
    assert [event["data"] for event in events["events"]] == [{"originalId": "session-1", "createdAt": TIME}]

    again = await import_entries(server, *entries)
    assert (again["left"], [each["before"] for each in again["taken"]]) == ([], [True, True])
    assert (await server.call("GET", "/api/sessions"))["total"] == 2

    path = f"/api/sessions/{first['id']}"
    await server.call("POST", f"{path}/restart", 200, json={"continueConversation": True})
    helper, terminal = first["workers"][0]["id"], first["workers"][1]["id"]
    assert (await server.worker_in(first["id"], helper, "active"))["run"] == 2
    assert (await server.http.get(f"{path}/workers/{terminal}/output")).content == b""
    await server.call("POST", f"{path}/workers/{terminal}/restart", 200)
    await server.worker_in(first["id"], terminal, "active")


async def test_an_imported_session_keeps_the_times_of_its_file(server: Server) -> None:
    later, unreadable, future = "2025-01-01T00:00:05.000Z", "yesterday", "2999-01-01T00:00:00.000Z"
    workers = [
        worker("w", "terminal", "Shell"),
        worker("v", "terminal", "Other", createdAt=later),
    ]
    body = [
        new_entry("dated", server.workspace, *workers),
        new_entry("undated", server.workspace, createdAt=unreadable),
        new_entry("later", server.workspace, createdAt=future),
    ]
    imported = await server.call("POST", "/api/import", 200, json=body)  # the file itself: a list
    dated, undated, too_late = [
        await server.call("GET", f"/api/sessions/{each['sessionId']}") for each in imported["taken"]
    ]
    assert (dated["createdAt"], dated["updatedAt"]) == (TIME, later)
    assert [each["createdAt"] for each in dated["workers"]] == [TIME, later]
    now = datetime.now(UTC).isoformat()
    assert "2026" <= undated["createdAt"] <= now
    assert "2026" <= too_late["createdAt"] <= now
    listed = (await server.call("GET", "/api/sessions"))["sessions"]
    assert listed[-1]["id"] == dated["id"]
    ((old,),) = [(await import_entries(server, old_entry("old", server.workspace)))["taken"]]
    session = await server.call("GET", f"/api/sessions/{old['sessionId']}")
    assert [session["createdAt"], session["updatedAt"]] == [TIME, TIME]


async def test_an_imported_agent_runs_in_a_terminal(server: Server) -> None:
    definition = {"id": "claude-tui", "name": "Claude", "kind": "pty", "command": ["/bin/cat"]}
    await server.call("PUT", "/api/agents/claude-tui", 200, json=definition)
    unknown = worker("u", "agent", "Unknown", agentId="unknown-agent")
    entries = [old_entry("old", server.workspace), new_entry("new", server.workspace, unknown)]
    taken = (await import_entries(server, *entries))["taken"]
    (claude,), (other,) = [
        (await server.call("GET", f"/api/sessions/{each['sessionId']}"))["workers"] for each in taken
    ]
    assert (claude["agentId"], claude["agentKind"]) == ("claude-tui", "pty")
    assert (other["agentId"], other["agentKind"]) == ("unknown-agent", "pty")
    path = f"/api/sessions/{claude['sessionId']}"
    await server.call("POST", f"{path}/workers/{claude['id']}/restart", 200)
    await server.worker_in(claude["sessionId"], claude["id"], "active")
    output = await server.http.get(f"{path}/workers/{claude['id']}/output")
    assert output.status_code == 200


async def test_the_sessions_of_agent_console_are_offered_at_the_first_start(server: Server) -> None:
    assert await server.call("GET", "/api/import", 200) == {"path": None, "sessions": []}
    file = server.workspace / ".agent-console" / "sessions.json"
    file.parent.mkdir()
    entry = old_entry("a", server.workspace)
    file.write_text(json.dumps([entry]))
    offer = f"1 session of agent-console can be imported: bullpen import {file}\n"
    assert offer not in server.output()
    await server.restart()
    async with asyncio.timeout(SECONDS):
        while offer not in server.output():
            await asyncio.sleep(0.02)
    found = await server.call("GET", "/api/import", 200)
    assert found == {"path": str(file), "sessions": [entry]}
    await server.call("POST", "/api/import", 200, json=found)
    await server.restart()
    assert server.output().count(offer) == 1
    file.write_text("{")
    assert (await server.call("GET", "/api/import", 200))["path"] is None


async def test_an_entry_that_cannot_be_imported_is_skipped_with_a_reason(server: Server) -> None:
    workspace = server.workspace
    with_unknown_workers = new_entry(
        "strange",
        workspace,
        worker("w", "toaster", "Browser"),
        worker("v", "agent", "Unknown", agentId="unknown-agent"),
    )
    in_worktree = new_entry("tree", workspace, type="worktree", repositoryId="unknown", worktreeId="wt")
    imported = await import_entries(
        server,
        new_entry("gone", workspace / "nowhere"),
        new_entry("out", Path("/etc")),
        7,
        with_unknown_workers,
        in_worktree,
    )
    left = {each["id"]: each["reason"] for each in imported["left"]}
    assert set(left) == {"gone", "out", "entry 3"}
    assert "no directory" in left["gone"]
    assert "outside the workspace root" in left["out"]
    notes = {each["id"]: each["notes"] for each in imported["taken"]}
    assert ["Browser" in notes["strange"][0], "no agent unknown-agent" in notes["strange"][1]] == [True, True]
    assert "not registered" in notes["tree"][0]


async def test_a_uuid_is_kept_as_the_id_and_the_session_survives_a_restart(server: Server) -> None:
    id = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
    await import_entries(server, new_entry(id, server.workspace, worker("w", "terminal", "Shell")))
    await server.restart()
    session = await server.call("GET", f"/api/sessions/{id}")
    assert [each["state"] for each in session["workers"]] == ["exited"]
    (again,) = (await import_entries(server, new_entry(id, server.workspace)))["taken"]
    assert (again["sessionId"], again["before"], again["workers"]) == (id, True, 1)


async def test_the_command_prints_imported_and_skipped_entries(server: Server, tmp_path: Path) -> None:
    bullpen = Bullpen(server.environment())
    file = tmp_path / "sessions.json"
    file.write_text(json.dumps([old_entry("a", server.workspace), new_entry("b", Path("/etc"))]))
    done = await bullpen("import", str(file))
    assert done.code == 0
    assert "imported workspace" in done.out
    assert "skipped b: /etc is outside the workspace root" in done.out
    again = await bullpen("import", str(file))
    assert (again.code, "was imported before" in again.out) == (0, True)
    file.write_text("{}")
    assert (await bullpen("import", str(file))).code == 2
    assert (await bullpen("import", str(tmp_path / "nothing"))).code == 2
