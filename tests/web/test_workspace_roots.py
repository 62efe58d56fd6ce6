"""Workspace roots: sessions are allowed in directories that the owner added, and nowhere else."""

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
from web.clients import Headers, new_token_headers
from web.test_export import export_session, import_recording


@pytest_asyncio.fixture
async def default_server(tmp_path: Path) -> AsyncIterator[Server]:
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


async def request(
    server: Server, method: str, path: str, credential: Headers | None = None, **more: Any
) -> Any:
    return await server.http.request(method, path, headers=credential, **more)


async def start_session(server: Server, directory: Path | str, credential: Headers | None = None) -> Any:
    return await request(server, "POST", "/api/sessions", credential, json={"locationPath": str(directory)})


async def test_a_view_token_cannot_read_the_owners_token_through_a_session_without_a_directory(
    default_server: Server,
) -> None:
    session = await default_server.call("POST", "/api/sessions", 201, json={})
    view = await new_token_headers(default_server, "view")
    for path in (".local/share/bullpen/token", ".local/share/bullpen/secret", ".ssh/id_ed25519"):
        answer = await request(default_server, "GET", f"/api/sessions/{session['id']}/files/{path}", view)
        assert answer.status_code in (403, 404), answer.text
    assert Path(session["locationPath"]).parent == default_server.workspace / "bullpen"
    assert os.stat(session["locationPath"]).st_mode & 0o777 == 0o750


async def test_a_home_added_by_force_hides_the_data_directory_and_credentials(default_server: Server) -> None:
    refused = await request(
        default_server, "POST", "/api/roots", json={"path": str(default_server.workspace)}
    )
    assert refused.status_code == 403
    assert "bullpen roots add --force" in refused.json()["message"]
    await default_server.call(
        "POST", "/api/roots", 201, json={"path": str(default_server.workspace), "force": True}
    )
    session = (await start_session(default_server, default_server.workspace)).json()
    files = f"/api/sessions/{session['id']}/files"
    view = await new_token_headers(default_server, "view")
    for path in (".local/share/bullpen/token", ".local/share/bullpen", ".ssh/id_ed25519", ".ssh"):
        assert (await request(default_server, "GET", f"{files}/{path}", view)).status_code == 403
    assert (await request(default_server, "GET", f"{files}/.local/share/bullpen/token")).status_code == 403
    assert (await request(default_server, "GET", f"{files}/.ssh/id_ed25519")).content == b"private-key"
    listed = await default_server.call("GET", f"{files}/.local/share")
    # The test itself created this file for the output of the server.
    assert [entry["name"] for entry in listed["entries"]] == ["bullpen.out"]


@pytest.mark.parametrize("scope", ["operate", "delegate"])
async def test_the_data_directory_is_no_workspace_with_any_token(default_server: Server, scope: str) -> None:
    await default_server.call(
        "POST", "/api/roots", 201, json={"path": str(default_server.workspace), "force": True}
    )
    for credential in (None, await new_token_headers(default_server, scope)):
        for directory in (
            default_server.home,
            default_server.home / "keeper",
            Path(f"/proc/self/root{default_server.home}"),
        ):
            assert (await start_session(default_server, directory, credential)).status_code == 403


async def test_a_directory_is_allowed_once_by_the_owner_and_then_remembered(
    default_server: Server, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir()
    (project / "src").mkdir()
    refused = await start_session(default_server, project / "src")
    assert refused.status_code == 403
    assert refused.json()["details"] == {"allowRoot": str(project)}
    assert f"bullpen roots add {project}" in refused.json()["message"]
    await default_server.call("POST", "/api/roots", 201, json={"path": str(project)})
    assert (await start_session(default_server, project / "src")).status_code == 201
    await default_server.restart()
    assert (await start_session(default_server, project)).status_code == 201
    listed = await default_server.call("GET", "/api/roots")
    assert not listed["fixed"]
    assert [(each["path"], each["source"]) for each in listed["roots"]] == [
        (str(default_server.workspace / "bullpen"), "scratch"),
        (str(project), "added"),
    ]
    await default_server.call("DELETE", f"/api/roots?path={project}", 204)
    assert (await start_session(default_server, project)).status_code == 403


@pytest.mark.parametrize("path", ["/", "/etc", "/proc/self", "/dev", "/usr/../etc/ssl"])
async def test_a_system_directory_is_never_a_root(default_server: Server, path: str) -> None:
    assert (await start_session(default_server, path)).status_code == 403
    for force in (False, True):
        refused = await request(default_server, "POST", "/api/roots", json={"path": path, "force": force})
        assert refused.status_code == 403
        assert "system directory" in refused.json()["message"]


@pytest.mark.parametrize("path", ["~nosuch", "~nosuch/x", "relative", "", "a\0b", "/" + "x" * 3000, "\ud800"])
async def test_an_invalid_or_missing_path_is_refused(default_server: Server, path: str) -> None:
    for method, route, body in (
        ("POST", "/api/sessions", {"locationPath": path, "type": "quick"}),
        ("POST", "/api/repositories", {"path": path}),
        ("POST", "/api/roots", {"path": path}),
    ):
        if path == "" and route == "/api/sessions":
            continue  # an empty path means that no directory is given
        headers = {"Content-Type": "application/json"}
        answer = await default_server.http.request(method, route, content=json.dumps(body), headers=headers)
        assert answer.status_code in (400, 404), (route, answer.text)


async def test_only_the_owner_adds_roots(default_server: Server, tmp_path: Path) -> None:
    repository = Repo(tmp_path / "project" / "repo").path
    for scope in ("operate", "view", "delegate"):
        credential = await new_token_headers(default_server, scope)
        for method, path, body in (
            ("GET", "/api/roots", None),
            ("POST", "/api/roots", {"path": str(tmp_path / "project")}),
            ("DELETE", "/api/roots?path=/", None),
            ("POST", "/api/repositories", {"path": str(repository)}),
        ):
            assert (await request(default_server, method, path, credential, json=body)).status_code == 403
    assert (await start_session(default_server, repository)).status_code == 403


async def test_registering_a_repository_allows_it_and_its_worktrees(
    default_server: Server, tmp_path: Path
) -> None:
    repo = Repo(tmp_path / "project" / "repo")
    repository = repo.path
    repo.git("worktree", "add", "-q", str(tmp_path / "elsewhere"))
    assert (await start_session(default_server, tmp_path / "elsewhere")).status_code == 403
    added = await default_server.call("POST", "/api/repositories", 201, json={"path": str(repository)})
    for directory in (repository, repository / ".git", tmp_path / "elsewhere"):
        assert (await start_session(default_server, directory)).status_code == 201, directory
    body = {"repoId": added["id"], "worktree": {"mode": "new", "branch": "topic"}}
    session = await default_server.call("POST", "/api/sessions", 201, json=body)
    assert Path(session["locationPath"]) == repository.with_name("repo.worktrees") / "topic"
    assert (await start_session(default_server, tmp_path / "project")).status_code == 403
    await default_server.call("DELETE", f"/api/repositories/{added['id']}", 204)
    assert (await start_session(default_server, repository)).status_code == 403


async def test_several_fixed_roots_are_the_only_roots_for_every_caller(tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for each in (*roots, tmp_path / "three"):
        each.mkdir()
    server = Server(tmp_path / "home", tmp_path, {"AGENT_WORKSPACE_ROOT": ":".join(map(str, roots))})
    await server.start()
    try:
        for each in roots:
            assert (await start_session(server, each)).status_code == 201
        assert (await start_session(server, tmp_path / "three")).status_code == 403
        added = await request(
            server, "POST", "/api/roots", json={"path": str(tmp_path / "three"), "force": True}
        )
        assert added.status_code == 409
        session = await server.call("POST", "/api/sessions", 201, json={})
        assert session["locationPath"] == str(roots[0])
    finally:
        await server.close()


async def test_a_workspace_replaced_by_a_link_serves_no_file(default_server: Server, tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    await default_server.call("POST", "/api/roots", 201, json={"path": str(project)})
    session = (await start_session(default_server, project)).json()
    project.rename(tmp_path / "moved")
    project.symlink_to(outside)
    answer = await request(default_server, "GET", f"/api/sessions/{session['id']}/files/secret")
    assert answer.status_code == 403


async def test_the_sessions_of_an_earlier_version_keep_their_directories(
    default_server: Server, tmp_path: Path
) -> None:
    """Earlier versions had no roots and allowed every directory below the home."""
    project = default_server.workspace / "project"
    project.mkdir()
    await default_server.call("POST", "/api/roots", 201, json={"path": str(project)})
    session = (await start_session(default_server, project)).json()
    await default_server.stop()
    subprocess.run(
        ["sqlite3", default_server.home / "bullpen.db", "DELETE FROM settings WHERE key = 'roots'"],
        check=True,
    )
    await default_server.start()
    await default_server.new_terminal(session["id"])
    assert (await start_session(default_server, default_server.workspace)).status_code == 403


async def test_the_changes_of_a_home_that_is_a_repository_leave_out_protected_files(
    default_server: Server,
) -> None:
    repo = Repo(default_server.workspace)
    (default_server.workspace / ".netrc").write_text("machine example password one\n")
    os.link(default_server.home / "token", default_server.workspace / "innocent")
    repo.git("add", ".netrc", "innocent")
    repo.git("commit", "-qm", "dotfiles")
    (default_server.workspace / ".netrc").write_text("machine example password two\n")
    (default_server.workspace / "innocent").unlink()
    os.link(default_server.home / "secret", default_server.workspace / "innocent")
    await default_server.call(
        "POST", "/api/roots", 201, json={"path": str(default_server.workspace), "force": True}
    )
    session = (await start_session(default_server, default_server.workspace)).json()
    path = f"/api/sessions/{session['id']}/diff"
    shown = {file["path"] for file in (await default_server.call("GET", path))["files"]}
    assert ".netrc" in shown
    assert not any(each.startswith((".local/share/bullpen/", "innocent")) for each in shown)
    answer = await request(default_server, "GET", path, await new_token_headers(default_server, "view"))
    assert "password" not in answer.text
    assert "private-key" not in answer.text


async def test_an_imported_recording_has_no_workspace(server: Server, default_server: Server) -> None:
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    await server.call("POST", f"/api/sessions/{session['id']}/complete")
    assert (
        await import_recording(default_server, session["id"], await export_session(server, session["id"]))
    )[0] == 201
    await default_server.call("POST", "/api/roots", 201, json={"path": str(server.workspace)})
    path = f"/api/sessions/{session['id']}"
    for method, route, body in (
        ("GET", "/files", None),
        ("GET", "/files/some/file", None),
        ("GET", "/diff", None),
        ("POST", "/workers", {"type": "terminal"}),
        ("POST", f"/workers/{worker['id']}/restart", None),
        ("POST", "/restart", None),
    ):
        answer = await request(default_server, method, path + route, json=body)
        assert answer.status_code == 409, (route, answer.text)
        assert "was imported" in answer.json()["message"]
    await default_server.restart()
    assert (await request(default_server, "GET", f"{path}/files")).status_code == 409
    assert (await default_server.call("GET", path))["locationPath"] == str(server.workspace)


async def test_an_imported_recording_cannot_choose_its_workspace(
    server: Server, default_server: Server
) -> None:
    """The first event of the recording names `/` as its workspace."""
    session = await server.new_session(title="t")
    await server.call("POST", f"/api/sessions/{session['id']}/complete")
    hostile = with_location(await export_session(server, session["id"]), str(server.workspace), "/")
    assert (await import_recording(default_server, session["id"], hostile))[0] == 201
    assert (await default_server.call("GET", f"/api/sessions/{session['id']}"))["locationPath"] == "/"
    view = await new_token_headers(default_server, "view")
    for path in ("files/etc/passwd", "files", "diff"):
        answer = await request(default_server, "GET", f"/api/sessions/{session['id']}/{path}", view)
        assert answer.status_code == 409


async def test_an_agent_does_not_continue_a_conversation_of_an_imported_recording(
    server: Server, default_server: Server
) -> None:
    session = await server.new_session(agentId="demo")
    elsewhere = await SessionClient(server, session).wait_for_event("agent_session")
    await server.call("POST", f"/api/sessions/{session['id']}/complete")
    assert (
        await import_recording(default_server, session["id"], await export_session(server, session["id"]))
    )[0] == 201
    await default_server.call("POST", "/api/roots", 201, json={"path": str(server.workspace)})
    body = {"locationPath": str(server.workspace), "agentId": "demo", "continueConversation": True}
    started = await SessionClient(default_server, await default_server.new_session(**body)).wait_for_event(
        "agent_session"
    )
    assert started["data"]["how"] == "new"
    assert started["data"]["acpSessionId"] != elsewhere["data"]["acpSessionId"]


def with_location(zipped: bytes, before: str, after: str) -> bytes:
    """Return a recording with another location in its events, and with valid checksums."""
    rewritten = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(zipped)) as source, zipfile.ZipFile(rewritten, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "events.jsonl":
                wires = (read_line(line) or b"" for line in data.splitlines())
                data = event_lines(wire.replace(before.encode(), after.encode()) for wire in wires)
            target.writestr(name, data)
    return rewritten.getvalue()
