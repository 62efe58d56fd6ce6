"""Adding a project: completing directories, repositories nearby, and clones from a URL."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bullpen.client import Client
from support.git_http_server import GitHttpServer, git_http_server
from support.repositories import Repo
from support.server import Server


@pytest_asyncio.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Server]:
    """A server without a setting for its workspace roots, with a home directory that has projects."""
    home = tmp_path / "user"
    for name in (".ssh", ".hidden", "apps/plain", "apps/.git-less", "zoo"):
        (home / name).mkdir(parents=True)
    (home / "apps/note.txt").touch()
    Repo(home / "apps/web")
    Repo(home / "apps/node_modules/lib")
    server = Server(home / ".local/share/bullpen", home, {"AGENT_WORKSPACE_ROOT": ""})
    server.home.mkdir(parents=True)
    await server.start()
    yield server
    await server.close()


async def complete(server: Server, text: str) -> list[str]:
    answer = await server.call("GET", "/api/directories", params={"path": text})
    return [Path(each["path"]).name for each in answer["directories"]]


async def test_a_typed_path_is_completed_with_directories(owner: Server) -> None:
    home = owner.workspace
    assert await complete(owner, "") == ["apps", "zoo"]
    assert await complete(owner, "~") == ["apps", "zoo"]
    assert await complete(owner, "~/A") == ["apps"]
    assert await complete(owner, "a") == ["apps"]
    assert await complete(owner, "apps/p") == ["plain"]
    assert await complete(owner, f"{home}/apps/") == ["node_modules", "plain", "web"]
    answer = await owner.call("GET", "/api/directories", params={"path": f"{home}/apps/w"})
    assert answer == {
        "directories": [{"path": f"{home}/apps/web", "isRepository": True, "isAllowed": False}],
        "more": 0,
    }


async def test_hidden_directories_need_a_dot_and_protected_and_system_ones_are_never_listed(
    owner: Server,
) -> None:
    home = owner.workspace
    assert await complete(owner, f"{home}/.h") == [".hidden"]
    assert await complete(owner, f"{home}/.s") == []
    assert await complete(owner, f"{home}/.local/share/") == []
    assert {"etc", "proc", "dev"}.isdisjoint(await complete(owner, "/"))
    for path in (f"{home}/.ssh/", "/etc/", "/proc/self/root/etc/"):
        refused = await owner.http.get("/api/directories", params={"path": path})
        assert refused.status_code == 403, path
    (home / "link").symlink_to("/etc")
    assert (await owner.http.get("/api/directories", params={"path": f"{home}/link/"})).status_code == 403
    assert (await owner.http.get("/api/directories", params={"path": f"{home}/no/x"})).status_code == 404
    assert (await owner.http.get("/api/directories", params={"path": "~nobody-here/b"})).status_code == 400


async def test_repositories_nearby_are_found_until_they_are_registered(owner: Server) -> None:
    path = f"{owner.workspace}/apps/web"
    found = await owner.call("GET", "/api/directories/repositories")
    assert found["cloneInto"] == f"{owner.workspace}/bullpen"
    assert path in [each["path"] for each in found["repositories"]]
    assert not any("node_modules" in each["path"] for each in found["repositories"])
    await owner.call("POST", "/api/repositories", 201, json={"path": path})
    found = await owner.call("GET", "/api/directories/repositories")
    assert path not in [each["path"] for each in found["repositories"]]


async def test_fixed_roots_are_all_that_can_be_listed(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    Repo(workspace / "inside")
    Repo(tmp_path / "outside")
    answer = await server.call("GET", "/api/directories")
    assert [each["path"] for each in answer["directories"]] == [str(workspace)]
    assert await complete(server, f"{workspace}/") == ["inside"]
    assert (await server.http.get("/api/directories", params={"path": f"{tmp_path}/"})).status_code == 403
    found = await server.call("GET", "/api/directories/repositories")
    assert [each["path"] for each in found["repositories"]] == [f"{workspace}/inside"]
    assert found["cloneInto"] == str(workspace)
    await server.call("POST", "/api/repositories", 201, json={"path": f"{workspace}/inside"})
    assert (await server.call("GET", "/api/directories/repositories"))["repositories"] == []


async def begin_clone(server: Server, remote: GitHttpServer, name: str = "project.git") -> dict[str, Any]:
    clone: dict[str, Any] = await server.call(
        "POST", "/api/clones", 201, json={"url": f"{remote.url}/{name}"}
    )
    return clone


async def ended(server: Server, clone: dict[str, Any]) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (now := await server.call("GET", f"/api/clones/{clone['id']}"))["state"] == "running":
            await asyncio.sleep(0.05)
    assert isinstance(now, dict)
    return now


async def test_a_clone_is_registered_when_it_is_complete(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    with git_http_server(tmp_path / "remote") as remote:
        clone = await ended(server, await begin_clone(server, remote))
        again = await server.http.post("/api/clones", json={"url": f"{remote.url}/project.git"})
    assert (clone["state"], clone["path"], clone["error"]) == ("done", f"{workspace}/project", None)
    [repository] = (await server.call("GET", "/api/repositories"))["repositories"]
    assert (repository["id"], repository["name"]) == (clone["repoId"], "project")
    assert (workspace / "project/readme.txt").read_text() == "hello\n"
    assert sorted(each.name for each in workspace.iterdir()) == ["project"]
    assert again.status_code == 409
    assert "exists already" in again.json()["message"]


async def test_a_failed_clone_says_why_and_leaves_nothing(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    with git_http_server(tmp_path / "remote") as remote:
        clone = await ended(server, await begin_clone(server, remote, "gone.git"))
    assert clone["state"] == "failed"
    assert clone["error"].startswith("git clone failed: repository")
    assert list(workspace.iterdir()) == []
    assert list((server.home / "clones").iterdir()) == []


async def test_a_cancelled_clone_leaves_nothing(server: Server, workspace: Path, tmp_path: Path) -> None:
    with git_http_server(tmp_path / "remote") as remote:
        remote.hold()
        clone = await begin_clone(server, remote)
        assert await asyncio.to_thread(remote.asked_for_objects.wait, 60)
        await server.call("DELETE", f"/api/clones/{clone['id']}", 204)
    assert (await server.call("GET", f"/api/clones/{clone['id']}"))["state"] == "cancelled"
    assert list(workspace.iterdir()) == []
    await server.call("DELETE", f"/api/clones/{clone['id']}", 204)


async def test_a_clone_of_a_killed_server_is_removed_by_the_next_one(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    with git_http_server(tmp_path / "remote") as remote:
        remote.hold()
        clone = await begin_clone(server, remote)
        assert await asyncio.to_thread(remote.asked_for_objects.wait, 60)
        await server.restart()
        async with asyncio.timeout(60):
            while list(workspace.iterdir()) or list((server.home / "clones").iterdir()):
                await asyncio.sleep(0.05)
        await server.call("GET", f"/api/clones/{clone['id']}", 404)


@pytest.mark.parametrize("url", ["ext::sh", "/srv/x", "https://a:b@example.org/x"])
async def test_an_address_that_git_must_not_get_is_refused(server: Server, url: str) -> None:
    refused = await server.http.post("/api/clones", json={"url": url})
    assert refused.status_code == 400


async def test_the_client_clones_a_project_and_reads_its_branches_and_files(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    async with Client(server.url, server.token) as client:
        assert [each.path for each in (await client.directories()).directories] == [str(workspace)]
        assert (await client.found_repositories()).clone_into == str(workspace)
        with git_http_server(tmp_path / "remote") as remote:
            clone = await client.start_clone(f"{remote.url}/project.git")
            await ended(server, {"id": clone.id})
        await client.cancel_clone(clone.id)
        done = await client.clone(clone.id)
        assert done.repo_id is not None
        assert (await client.branches(done.repo_id))[0] == "main"
        session = await server.new_session(locationPath=done.path)
        assert (await client.file_names(session["id"])).files == ["readme.txt"]
