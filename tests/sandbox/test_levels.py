"""The sandbox level of each run: where it comes from, where it is recorded, and who may lower it."""

import json
import shlex
from typing import Any

import pytest

from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted


async def level_of(client: SessionClient) -> Any:
    return (await client.worker())["sandbox"]


async def test_an_agent_has_the_level_workspace_and_a_terminal_is_open(server: Server) -> None:
    await define_scripted(server)
    client = await SessionClient.begin(server)
    terminal = await server.new_terminal(client.id)
    assert terminal["sandbox"] == "open"
    spawned = {
        each["role"]: each["data"] for each in await client.events() if each["type"] == "worker_spawning"
    }
    assert {role: data["sandbox"] for role, data in spawned.items()} == {
        "scripted": "workspace",
        "terminal": "open",
    }
    restarted = await server.call("POST", f"{client.path}/workers/{terminal['id']}/restart", 409)
    assert restarted["error"] == "conflict"


@pytest.mark.parametrize(
    ("session", "agent", "setting", "level"),
    [
        ("open", None, "", "open"),
        (None, "open", "", "open"),
        ("open", "workspace", "", "workspace"),
        ("sealed", "open", "", "sealed"),
        ("open", None, "workspace", "workspace"),
        (None, None, "open", "open"),
    ],
)
async def test_the_strictest_level_that_is_set_applies(
    server: Server, session: str | None, agent: str | None, setting: str, level: str
) -> None:
    server.set(BULLPEN_SANDBOX=setting)
    await server.restart()
    await define_scripted(server, sandbox=agent)
    client = await SessionClient.begin(server, sandbox=session)
    assert await level_of(client) == level
    assert (await server.call("GET", client.path))["sandbox"] == session


async def test_agents_and_git_work_where_the_workspace_root_is_the_whole_machine(server: Server) -> None:
    server.set(AGENT_WORKSPACE_ROOT="/", BULLPEN_SANDBOX="workspace")
    await server.restart()
    repository = Repo(server.workspace / "site")
    (server.workspace / "other").mkdir()
    session = await server.new_session(locationPath=str(repository.path))
    show = "ls >> shown; ls ../other >> shown 2>&1 || echo hidden >> shown"
    body = {"type": "terminal", "command": ["sh", "-c", show], "sandbox": "workspace"}
    path = f"/api/sessions/{session['id']}"
    worker = await server.call("POST", f"{path}/workers", 201, json=body)
    ended = await server.worker_in(session["id"], worker["id"], "exited", "failed")
    assert (ended["error"], ended["exitCode"]) == (None, 0)
    shown = (repository.path / "shown").read_text().splitlines()
    assert shown[-1] == "hidden"
    changed = (await server.call("GET", f"{path}/diff"))["files"]
    assert [each["path"] for each in changed] == ["shown"]


async def test_a_repository_can_require_a_level(server: Server) -> None:
    await define_scripted(server)
    repository = Repo(server.workspace / "site")
    registered = await server.call("POST", "/api/repositories", 201, json={"path": str(repository.path)})
    path = f"/api/repositories/{registered['id']}"
    edited = await server.call("PATCH", path, 200, json={"sandbox": "sealed"})
    assert edited["sandbox"] == "sealed"
    client = await SessionClient.begin(
        server, repoId=registered["id"], locationPath=str(repository.path), sandbox="open"
    )
    assert await level_of(client) == "sealed"
    assert (await server.call("PATCH", path, 200, json={"sandbox": ""}))["sandbox"] is None


async def test_the_terminals_of_an_agent_have_its_level_and_cannot_read_the_token(server: Server) -> None:
    await define_scripted(server)
    (server.home / "token").write_text("the token")
    client = await SessionClient.begin(server)
    params = {"command": "cat", "args": [str(server.home / "token")]}
    await client.run_turn(f"[[ask method=terminal/create {shlex.quote('params=' + json.dumps(params))}]]")
    exited = await client.wait_for_event("worker_exited")
    assert exited["data"]["exitCode"] == 1
    levels = [each["data"]["sandbox"] for each in await client.events() if each["type"] == "worker_spawning"]
    assert levels == ["workspace", "workspace"]


async def test_a_delegate_cannot_start_an_open_session(server: Server) -> None:
    await define_scripted(server)
    token = await server.call("POST", "/api/tokens", 201, json={"name": "an agent", "scope": "delegate"})
    body = {"locationPath": str(server.workspace), "agentId": "scripted", "sandbox": "open"}
    headers = {"Authorization": f"Bearer {token['token']}"}
    refused = await server.call("POST", "/api/sessions", 403, json=body, headers=headers)
    assert "open" in refused["message"]
    created = await server.call(
        "POST", "/api/sessions", 201, json=body | {"sandbox": "sealed"}, headers=headers
    )
    assert created["workers"][0]["sandbox"] == "sealed"


async def test_the_temporary_files_of_a_session_are_removed_with_it(server: Server) -> None:
    await define_scripted(server)
    client = await SessionClient.begin(server)
    directory = server.home / "tmp" / client.id
    assert directory.is_dir()
    await server.call("DELETE", f"{client.path}?purge=true", 200)
    assert not directory.exists()


async def test_the_server_says_what_this_machine_offers(server: Server) -> None:
    found = await server.call("GET", "/api/sandbox", 200)
    assert (found["mechanism"], found["levels"]) == ("bubblewrap", ["open", "workspace", "sealed"])
    assert (found["agents"], found["terminals"], found["gaps"]) == ("workspace", "open", [])


async def test_without_bubblewrap_an_agent_runs_under_landlock(server: Server) -> None:
    programs = server.workspace / "bin"
    programs.mkdir()
    for name in ("sh", "env", "cat"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    server.set(PATH=str(programs))
    await server.restart()
    await define_scripted(server)
    client = await SessionClient.begin(server)
    assert (await server.call("GET", "/api/sandbox"))["mechanism"] == "landlock"
    await client.run_turn("[[chunk hello]]")
    assert await client.agent_text() == "hello"


async def test_without_bubblewrap_a_sealed_agent_is_not_started(server: Server) -> None:
    server.set(PATH=str(server.workspace))
    await server.restart()
    await define_scripted(server)
    session = await server.new_session(agentId="scripted", sandbox="sealed")
    worker = await server.worker_in(session["id"], session["workers"][0]["id"], "failed")
    assert "needs bubblewrap" in worker["error"]


async def ask_for_file(client: SessionClient, path: str) -> None:
    """Let the agent ask the server to write a file."""
    params = json.dumps({"path": path, "content": "[core]\n\tfsmonitor = /bin/evil\n"})
    await client.run_turn(f"[[ask method=fs/write_text_file {shlex.quote(f'params={params}')}]]")


@pytest.mark.parametrize(
    "path", [".git/config", ".git/hooks/post-checkout", "link/config", "sub/../.GIT/config"]
)
async def test_the_server_writes_nothing_of_git_for_an_agent_in_a_sandbox(server: Server, path: str) -> None:
    repository = Repo(server.workspace / "site")
    (repository.path / "link").symlink_to(".git")
    (repository.path / "sub").mkdir()
    config = (repository.git_dir / "config").read_bytes()
    await define_scripted(server)
    client = await SessionClient.begin(server, locationPath=str(repository.path))
    await ask_for_file(client, str(repository.path / path))
    refused = await client.wait_for_event("error")
    assert "belongs to git" in refused["data"]["message"]
    await ask_for_file(client, str(repository.path / "sub/allowed"))
    await client.wait_for_event("file_write")
    assert (repository.git_dir / "config").read_bytes() == config
    assert not (repository.git_dir / "hooks/post-checkout").exists()


async def test_a_terminal_of_an_agent_has_the_workspace_of_the_agent_and_no_more(server: Server) -> None:
    repository = Repo(server.workspace / "site")
    (repository.path / "sub").mkdir()
    await define_scripted(server)
    client = await SessionClient.begin(server, locationPath=str(repository.path))

    async def exit_code(script: str, directory: str) -> int:
        after = (await client.events())[-1]["seq"]
        cwd = str(repository.path / directory)
        params = json.dumps({"command": "sh", "args": ["-c", script], "cwd": cwd})
        await client.run_turn(f"[[ask method=terminal/create {shlex.quote(f'params={params}')}]]")
        exited = await client.wait_for_event("worker_exited", after=after)
        code: int = exited["data"]["exitCode"]
        return code

    assert await exit_code("test $PWD = $(git rev-parse --show-toplevel)/sub && echo x > ../file", "sub") == 0
    assert await exit_code("echo evil > post-checkout", ".git/hooks") != 0
    assert not (repository.git_dir / "hooks/post-checkout").exists()


async def test_a_run_starts_right_after_the_user_has_removed_a_cache(server: Server) -> None:
    cache = server.workspace / ".npm"
    cache.mkdir()
    session = await server.new_session()
    await server.new_terminal(session["id"], sandbox="workspace")
    cache.rmdir()
    await server.new_terminal(session["id"], sandbox="workspace")
