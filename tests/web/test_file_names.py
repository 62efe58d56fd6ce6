"""The names of the files in a workspace, and files that a prompt mentions."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from support.repositories import Repo
from support.scripted_agent.journal import message_of, read_journal
from support.server import Server
from support.session_client import SessionClient, define_scripted


async def file_names(server: Server, session: dict[str, Any]) -> list[str]:
    answer = await server.call("GET", f"/api/sessions/{session['id']}/file-names")
    names: list[str] = answer["files"]
    return names


async def test_files_that_git_ignores_are_not_listed(server: Server, workspace: Path) -> None:
    repo = Repo(workspace / "app")
    for name in (".gitignore", "new.txt", "build/out.o", "src/a.py", "src/deep/b.py"):
        repo.write(name, "build/\n")
    session = await server.new_session(locationPath=str(repo.path))
    assert await file_names(server, session) == [
        ".gitignore",
        "new.txt",
        "readme.txt",
        "src/a.py",
        "src/deep/b.py",
    ]
    below = await server.new_session(locationPath=str(repo.path / "src"))
    assert await file_names(server, below) == ["a.py", "deep/b.py"]


async def test_without_git_hidden_directories_and_links_are_left_out(server: Server, workspace: Path) -> None:
    for name in ("b/c.txt", "a.txt", ".cache/x", "node_modules/y", 'say "hi"'):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).touch()
    (workspace / "z").symlink_to("/etc")
    session = await server.new_session()
    assert [name for name in await file_names(server, session) if name != "z"] == ["a.txt", "b/c.txt"]


@pytest_asyncio.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Server]:
    """A server whose data directory and credentials lie in its only workspace root."""
    home = tmp_path / "user"
    for name in (".ssh/id", ".netrc", "notes.md", ".claude/.credentials.json"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")
    server = Server(home / "data", home)
    await server.start()
    yield server
    await server.close()


async def test_protected_places_are_never_listed(owner: Server) -> None:
    session = await owner.new_session()
    assert await file_names(owner, session) == ["data.out", "notes.md"]
    Repo(owner.workspace)  # now git lists hidden files too
    assert await file_names(owner, session) == ["data.out", "notes.md", "readme.txt"]


async def test_a_mentioned_file_is_sent_as_a_link(server: Server, workspace: Path) -> None:
    journal = await define_scripted(server)
    for name in ("a b.txt", "notes.md"):
        (workspace / name).write_text("x")
    os.symlink("/etc/passwd", workspace / "outside")
    session = await SessionClient.begin(server)
    text = 'read @notes.md, @"a b.txt" and @notes.md; not @missing, @outside or @../x'
    await session.run_turn(text)
    received = (message_of(each) for each in read_journal(journal) if each["dir"] == "in")
    [prompt] = (each for each in received if each.get("method") == "session/prompt")
    assert prompt["params"]["prompt"] == [
        {"type": "text", "text": text},
        {"type": "resource_link", "name": "notes.md", "uri": f"file://{workspace}/notes.md"},
        {"type": "resource_link", "name": "a b.txt", "uri": f"file://{workspace}/a%20b.txt"},
    ]
