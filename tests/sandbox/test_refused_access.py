"""What the sandbox refuses to an agent is in the inbox, until a user allows it or refuses it for good."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted


@pytest.fixture
async def client(server: Server) -> SessionClient:
    """Return a client of a session in a repository."""
    journal = server.home.parent / "scripted.journal"
    journal.touch()
    await define_scripted(server, state=[str(journal)])
    repository = Repo(server.workspace / "shop")
    found = await server.call("POST", "/api/repositories", 201, json={"path": str(repository.path)})
    return await SessionClient.begin(server, repoId=found["id"], locationPath=str(repository.path))


@pytest.fixture
def outside(server: Server) -> Path:
    """Return a directory outside the workspace roots, with a file."""
    directory = server.home.parent / "data"
    directory.mkdir()
    (directory / "notes.txt").write_text("hello")
    return directory


async def read(client: SessionClient, path: Path) -> str:
    """Let the agent read a file through the server; return how its turn ends."""
    params = json.dumps({"path": str(path)})
    ended = await client.run_turn(f"[[ask method=fs/read_text_file 'params={params}']]")
    reason: str = ended["data"]["stopReason"]
    return reason


async def write(client: SessionClient, path: Path) -> str:
    """Let the agent write a file through the server; return how its turn ends."""
    params = json.dumps({"path": str(path), "content": "mine"})
    ended = await client.run_turn(f"[[ask method=fs/write_text_file 'params={params}']]")
    reason: str = ended["data"]["stopReason"]
    return reason


async def refused(client: SessionClient) -> list[dict[str, Any]]:
    """Return the refusals in the inbox."""
    items = (await client.server.call("GET", "/api/inbox"))["items"]
    return [each for each in items if each["kind"] == "refused"]


async def allow(client: SessionClient, item: dict[str, Any]) -> dict[str, Any]:
    grant = {**item["refused"], "repoId": item["repoId"]}
    added: dict[str, Any] = await client.server.call("PUT", "/api/sandbox/grants", 200, json=grant)
    return added


async def test_a_file_that_an_agent_was_refused_is_allowed_from_the_inbox(
    client: SessionClient, outside: Path
) -> None:
    link = client.server.workspace / "shop/link"
    link.symlink_to(outside / "notes.txt")
    for path in (outside / "notes.txt", link, Path("../../data/notes.txt")):
        assert await read(client, path) == "error"
    (item,) = await refused(client)
    assert item["refused"] == {"kind": "read", "target": str(outside / "notes.txt")}
    assert item["text"] == f"Scripted may not read {outside}/notes.txt"

    grant = await allow(client, item)
    assert await refused(client) == []
    for path in (outside / "notes.txt", link, Path("../../data/notes.txt")):
        assert await read(client, path) == "end_turn"
    assert await write(client, outside / "notes.txt") == "error"
    assert (outside / "notes.txt").read_text() == "hello"

    await client.server.call("DELETE", f"/api/sandbox/grants/{grant['id']}", 204)
    assert await read(client, outside / "notes.txt") == "error"
    assert [each["refused"]["kind"] for each in await refused(client)] == ["read", "write"]


async def test_a_new_file_that_was_allowed_is_written_and_nothing_beside_it(
    client: SessionClient, outside: Path
) -> None:
    assert await write(client, outside / "new.txt") == "error"
    (item,) = await refused(client)
    await allow(client, item)
    assert await write(client, outside / "new.txt") == "end_turn"
    assert await read(client, outside / "new.txt") == "end_turn"
    assert (outside / "new.txt").read_text() == "mine"
    assert await read(client, outside / "notes.txt") == "error"
    assert await write(client, outside / "notes.txt") == "error"


async def test_a_grant_of_another_repository_allows_nothing(client: SessionClient, outside: Path) -> None:
    other = Repo(client.server.workspace / "other")
    found = await client.server.call("POST", "/api/repositories", 201, json={"path": str(other.path)})
    grant = {"kind": "read", "target": str(outside), "repoId": found["id"]}
    await client.server.call("PUT", "/api/sandbox/grants", 200, json=grant)
    assert await read(client, outside / "notes.txt") == "error"


async def test_bullpens_files_and_credentials_are_never_offered_nor_read(
    client: SessionClient, tmp_path: Path
) -> None:
    everything = {"kind": "read", "target": "/", "repoId": None}
    token = client.server.home / "token"
    for _ in range(2):
        assert await read(client, token) == "error"
        assert await refused(client) == []
        await client.server.call("PUT", "/api/sandbox/grants", 200, json=everything)
    error = await client.wait_for_event("error")
    assert "outside the workspace" in error["data"]["message"]


async def test_a_path_that_cannot_be_shown_exactly_is_not_offered(client: SessionClient) -> None:
    for number, target in enumerate((b"/srv/\xff", "/srv/a\u202eb".encode(), b"/srv/a\nb")):
        link = client.server.workspace / f"shop/link{number}"
        os.symlink(target, os.fsencode(link))
        assert await read(client, link) == "error"
    assert await refused(client) == []
    assert (await client.run_turn("[[chunk alive]]"))["data"]["stopReason"] == "end_turn"


async def test_a_refusal_stays_refused_after_the_user_has_decided_so(
    client: SessionClient, outside: Path
) -> None:
    await read(client, outside / "notes.txt")
    (item,) = await refused(client)
    await client.server.call("POST", f"{client.path}/seen", 204, json={"seq": item["seq"] + 1})
    assert await refused(client) == [item]  # a user who looks at the session has not decided it
    await client.server.call("POST", f"{client.path}/seen", 204, json={"seq": item["seq"]})
    assert await refused(client) == []
    await read(client, outside / "notes.txt")
    await client.server.restart()
    assert await refused(client) == []


async def test_what_a_run_can_do_is_listed(client: SessionClient, outside: Path) -> None:
    worker = await client.worker()
    path = f"{client.path}/workers/{worker['id']}/sandbox"
    before = await client.server.call("GET", path)
    workspace = str(client.server.workspace / "shop")
    assert (before["level"], before["hasNetwork"], before["hosts"]) == ("workspace", True, [])
    assert before["writable"][0] == workspace
    assert f"{workspace}/.git/config" in before["protected"]
    assert str(client.server.home) in before["hidden"]
    assert f"{workspace}/.git" not in before["writable"]  # it lies in the workspace
    assert str(outside) not in before["readable"]

    grant = {"kind": "read", "target": str(outside)}
    await client.server.call("PUT", "/api/sandbox/grants", 200, json=grant)
    assert str(outside) in (await client.server.call("GET", path))["readable"]

    terminal = await client.server.new_terminal(client.id)
    terminal_path = f"{client.path}/workers/{terminal['id']}/sandbox"
    opened = await client.server.call("GET", terminal_path)
    assert (opened["level"], opened["writable"], opened["hidden"]) == ("open", [], [])


async def test_the_hosts_of_a_sealed_run_are_listed(server: Server) -> None:
    await define_scripted(server)
    client = await SessionClient.begin(server, sandbox="sealed")
    grant = {"kind": "host", "target": "example.org"}
    await server.call("PUT", "/api/sandbox/grants", 200, json=grant)
    worker = await client.worker()
    access = await server.call("GET", f"{client.path}/workers/{worker['id']}/sandbox")
    assert (access["level"], access["hasNetwork"], access["hosts"]) == ("sealed", False, ["example.org"])
    assert not [each for each in access["readable"] if "proxy" in each]
