"""Where sessions may live when no setting fixes it: in what the owner allowed, and nowhere else."""

import io
import json
import os
import subprocess
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bullpen.wire.event_lines import event_lines, read_line
from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient
from web.people import Headers, bearer
from web.test_export import exported, put


@pytest_asyncio.fixture
async def free(tmp_path: Path) -> AsyncIterator[Server]:
    """A server with default settings: the data directory lies in the home directory."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id_ed25519").write_text("private-key")
    (tmp_path / "project").mkdir()
    server = Server(home / ".local/share/bullpen", home, {"AGENT_WORKSPACE_ROOT": ""})
    server.home.mkdir(parents=True)
    await server.start()
    yield server
    await server.close()


async def ask(server: Server, method: str, path: str, who: Headers | None = None, **more: Any) -> Any:
    return await server.http.request(method, path, headers=who, **more)


async def start(server: Server, directory: Path | str, who: Headers | None = None) -> Any:
    return await ask(server, "POST", "/api/sessions", who, json={"locationPath": str(directory)})


async def test_a_view_token_does_not_read_the_owners_token_from_a_session_without_a_place(
    free: Server,
) -> None:
    session = await free.call("POST", "/api/sessions", 201, json={})
    view = await bearer(free, "view")
    for path in (".local/share/bullpen/token", ".local/share/bullpen/secret", ".ssh/id_ed25519"):
        answer = await ask(free, "GET", f"/api/sessions/{session['id']}/files/{path}", view)
        assert answer.status_code in (403, 404), answer.text
    assert Path(session["locationPath"]).parent == free.workspace / "bullpen"
    assert os.stat(session["locationPath"]).st_mode & 0o777 == 0o750


async def test_a_home_that_was_added_by_force_hides_the_data_directory_and_the_keys(free: Server) -> None:
    refused = await ask(free, "POST", "/api/roots", json={"path": str(free.workspace)})
    assert refused.status_code == 403
    assert "bullpen roots add --force" in refused.json()["message"]
    await free.call("POST", "/api/roots", 201, json={"path": str(free.workspace), "force": True})
    session = (await start(free, free.workspace)).json()
    files = f"/api/sessions/{session['id']}/files"
    view = await bearer(free, "view")
    for path in (".local/share/bullpen/token", ".local/share/bullpen", ".ssh/id_ed25519", ".ssh"):
        assert (await ask(free, "GET", f"{files}/{path}", view)).status_code == 403
    assert (await ask(free, "GET", f"{files}/.local/share/bullpen/token")).status_code == 403
    assert (await ask(free, "GET", f"{files}/.ssh/id_ed25519")).content == b"private-key"
    listed = await free.call("GET", f"{files}/.local/share")
    assert [entry["name"] for entry in listed["entries"]] == ["bullpen.out"]  # written by the test


@pytest.mark.parametrize("scope", ["operate", "delegate"])
async def test_the_data_directory_is_no_workspace_for_anybody(free: Server, scope: str) -> None:
    await free.call("POST", "/api/roots", 201, json={"path": str(free.workspace), "force": True})
    for who in (None, await bearer(free, scope)):
        for directory in (free.home, free.home / "keeper", Path(f"/proc/self/root{free.home}")):
            assert (await start(free, directory, who)).status_code == 403


async def test_a_directory_is_allowed_once_by_the_owner_and_then_remembered(
    free: Server, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir()
    (project / "src").mkdir()
    refused = await start(free, project / "src")
    assert refused.status_code == 403
    assert refused.json()["details"] == {"allowRoot": str(project)}
    assert f"bullpen roots add {project}" in refused.json()["message"]
    await free.call("POST", "/api/roots", 201, json={"path": str(project)})
    assert (await start(free, project / "src")).status_code == 201
    await free.restart()
    assert (await start(free, project)).status_code == 201
    listed = await free.call("GET", "/api/roots")
    assert not listed["fixed"]
    assert [(each["path"], each["source"]) for each in listed["roots"]] == [
        (str(free.workspace / "bullpen"), "scratch"),
        (str(project), "added"),
    ]
    await free.call("DELETE", f"/api/roots?path={project}", 204)
    assert (await start(free, project)).status_code == 403


@pytest.mark.parametrize("path", ["/", "/etc", "/proc/self", "/dev", "/usr/../etc/ssl"])
async def test_a_system_directory_is_never_a_root(free: Server, path: str) -> None:
    assert (await start(free, path)).status_code == 403
    for force in (False, True):
        refused = await ask(free, "POST", "/api/roots", json={"path": path, "force": force})
        assert refused.status_code == 403
        assert "system directory" in refused.json()["message"]


@pytest.mark.parametrize("path", ["~nosuch", "~nosuch/x", "relative", "", "a\0b", "/" + "x" * 3000, "\ud800"])
async def test_a_path_that_names_nothing_is_refused_in_a_sentence(free: Server, path: str) -> None:
    for method, where, body in (
        ("POST", "/api/sessions", {"locationPath": path, "type": "quick"}),
        ("POST", "/api/repositories", {"path": path}),
        ("POST", "/api/roots", {"path": path}),
    ):
        if path == "" and where == "/api/sessions":
            continue  # means: no place
        headers = {"Content-Type": "application/json"}
        answer = await free.http.request(method, where, content=json.dumps(body), headers=headers)
        assert answer.status_code in (400, 404), (where, answer.text)


async def test_only_the_owner_adds_roots(free: Server, tmp_path: Path) -> None:
    repository = Repo(tmp_path / "project" / "repo").path
    for scope in ("operate", "view", "delegate"):
        who = await bearer(free, scope)
        for method, path, body in (
            ("GET", "/api/roots", None),
            ("POST", "/api/roots", {"path": str(tmp_path / "project")}),
            ("DELETE", "/api/roots?path=/", None),
            ("POST", "/api/repositories", {"path": str(repository)}),
        ):
            assert (await ask(free, method, path, who, json=body)).status_code == 403
    assert (await start(free, repository)).status_code == 403


async def test_registering_a_repository_allows_it_and_its_worktrees(free: Server, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project" / "repo")
    repository = repo.path
    repo.git("worktree", "add", "-q", str(tmp_path / "elsewhere"))
    assert (await start(free, tmp_path / "elsewhere")).status_code == 403
    added = await free.call("POST", "/api/repositories", 201, json={"path": str(repository)})
    for directory in (repository, repository / ".git", tmp_path / "elsewhere"):
        assert (await start(free, directory)).status_code == 201, directory
    body = {"repoId": added["id"], "worktree": {"mode": "new", "branch": "topic"}}
    session = await free.call("POST", "/api/sessions", 201, json=body)
    assert Path(session["locationPath"]) == repository.with_name("repo.worktrees") / "topic"
    assert (await start(free, tmp_path / "project")).status_code == 403
    await free.call("DELETE", f"/api/repositories/{added['id']}", 204)
    assert (await start(free, repository)).status_code == 403


async def test_several_fixed_roots_are_a_hard_boundary_for_everyone(tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for each in (*roots, tmp_path / "three"):
        each.mkdir()
    server = Server(tmp_path / "home", tmp_path, {"AGENT_WORKSPACE_ROOT": ":".join(map(str, roots))})
    await server.start()
    try:
        for each in roots:
            assert (await start(server, each)).status_code == 201
        assert (await start(server, tmp_path / "three")).status_code == 403
        added = await ask(server, "POST", "/api/roots", json={"path": str(tmp_path / "three"), "force": True})
        assert added.status_code == 409
        session = await server.call("POST", "/api/sessions", 201, json={})
        assert session["locationPath"] == str(roots[0])
    finally:
        await server.close()


async def test_a_workspace_that_is_swapped_for_a_link_serves_nothing(free: Server, tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    await free.call("POST", "/api/roots", 201, json={"path": str(project)})
    session = (await start(free, project)).json()
    project.rename(tmp_path / "moved")
    project.symlink_to(outside)
    answer = await ask(free, "GET", f"/api/sessions/{session['id']}/files/secret")
    assert answer.status_code == 403


async def test_the_sessions_of_an_earlier_version_keep_their_directories(
    free: Server, tmp_path: Path
) -> None:
    """Before there were roots, every directory below the home was allowed."""
    project = free.workspace / "project"
    project.mkdir()
    await free.call("POST", "/api/roots", 201, json={"path": str(project)})
    session = (await start(free, project)).json()
    await free.stop()
    subprocess.run(
        ["sqlite3", free.home / "bullpen.db", "DELETE FROM settings WHERE key = 'roots'"], check=True
    )
    await free.start()
    await free.new_terminal(session["id"])
    assert (await start(free, free.workspace)).status_code == 403


async def test_the_changes_of_a_home_that_is_a_repository_leave_out_protected_files(free: Server) -> None:
    repo = Repo(free.workspace)
    (free.workspace / ".netrc").write_text("machine example password one\n")
    os.link(free.home / "token", free.workspace / "innocent")
    repo.git("add", ".netrc", "innocent")
    repo.git("commit", "-qm", "dotfiles")
    (free.workspace / ".netrc").write_text("machine example password two\n")
    (free.workspace / "innocent").unlink()
    os.link(free.home / "secret", free.workspace / "innocent")
    await free.call("POST", "/api/roots", 201, json={"path": str(free.workspace), "force": True})
    session = (await start(free, free.workspace)).json()
    path = f"/api/sessions/{session['id']}/diff"
    shown = {file["path"] for file in (await free.call("GET", path))["files"]}
    assert ".netrc" in shown
    assert not any(each.startswith((".local/share/bullpen/", "innocent")) for each in shown)
    answer = await ask(free, "GET", path, await bearer(free, "view"))
    assert "password" not in answer.text
    assert "private-key" not in answer.text


async def test_an_imported_recording_has_no_workspace(server: Server, free: Server) -> None:
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    await server.call("POST", f"/api/sessions/{session['id']}/complete")
    assert (await put(free, session["id"], await exported(server, session["id"])))[0] == 201
    await free.call("POST", "/api/roots", 201, json={"path": str(server.workspace)})
    path = f"/api/sessions/{session['id']}"
    for method, where, body in (
        ("GET", "/files", None),
        ("GET", "/files/some/file", None),
        ("GET", "/diff", None),
        ("POST", "/workers", {"type": "terminal"}),
        ("POST", f"/workers/{worker['id']}/restart", None),
        ("POST", "/restart", None),
    ):
        answer = await ask(free, method, path + where, json=body)
        assert answer.status_code == 409, (where, answer.text)
        assert "was imported" in answer.json()["message"]
    await free.restart()
    assert (await ask(free, "GET", f"{path}/files")).status_code == 409
    assert (await free.call("GET", path))["locationPath"] == str(server.workspace)


async def test_an_imported_recording_does_not_choose_its_own_root(server: Server, free: Server) -> None:
    """Its first event says that it lived in the root of the file system."""
    session = await server.new_session(title="t")
    await server.call("POST", f"/api/sessions/{session['id']}/complete")
    hostile = with_location(await exported(server, session["id"]), str(server.workspace), "/")
    assert (await put(free, session["id"], hostile))[0] == 201
    assert (await free.call("GET", f"/api/sessions/{session['id']}"))["locationPath"] == "/"
    view = await bearer(free, "view")
    for path in ("files/etc/passwd", "files", "diff"):
        answer = await ask(free, "GET", f"/api/sessions/{session['id']}/{path}", view)
        assert answer.status_code == 409


async def test_an_agent_does_not_go_back_to_a_conversation_of_an_imported_recording(
    server: Server, free: Server
) -> None:
    session = await server.new_session(agentId="demo")
    elsewhere = await SessionClient(server, session).wait_for_event("agent_session")
    await server.call("POST", f"/api/sessions/{session['id']}/complete")
    assert (await put(free, session["id"], await exported(server, session["id"])))[0] == 201
    await free.call("POST", "/api/roots", 201, json={"path": str(server.workspace)})
    body = {"locationPath": str(server.workspace), "agentId": "demo", "continueConversation": True}
    begun = await SessionClient(free, await free.new_session(**body)).wait_for_event("agent_session")
    assert begun["data"]["how"] == "new"
    assert begun["data"]["acpSessionId"] != elsewhere["data"]["acpSessionId"]


def with_location(zipped: bytes, before: str, after: str) -> bytes:
    """Return a recording that says it lived elsewhere, with checksums that are right."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(zipped)) as source, zipfile.ZipFile(made, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "events.jsonl":
                wires = (read_line(line) or b"" for line in data.splitlines())
                data = event_lines(wire.replace(before.encode(), after.encode()) for wire in wires)
            target.writestr(name, data)
    return made.getvalue()
