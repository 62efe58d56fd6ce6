"""The changes of a workspace over REST, and comments on them sent as one message."""

from pathlib import Path
from typing import Any

import pytest

from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def repo(shared_server: Server, tmp_path: Path) -> Repo:
    return Repo(shared_server.workspace / tmp_path.name)


async def diff_of(shared_server: Server, session: dict[str, Any], **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = await shared_server.call(
        "GET", f"/api/sessions/{session['id']}/diff", params=query
    )
    return found


async def test_the_changes_of_a_workspace_are_served(shared_server: Server, repo: Repo) -> None:
    session = await shared_server.new_session(locationPath=str(repo.path))
    repo.write("readme.txt", "hello\nthere\n")
    repo.write("new.txt", "new\n")
    found = await diff_of(shared_server, session)
    assert found["branch"] == "main"
    assert (found["additions"], found["deletions"], found["note"]) == (2, 0, None)
    new, changed = found["files"]
    assert (new["path"], new["status"], new["staged"], new["unstaged"]) == (
        "new.txt",
        "untracked",
        False,
        True,
    )
    assert changed["hunks"] == [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 2}]
    assert "+there\n" in changed["patch"]
    without_patches = await diff_of(shared_server, session, patches="false")
    assert [file["patch"] for file in without_patches["files"]] == ["", ""]


async def test_the_base_may_be_a_commit_but_not_an_option_of_git(shared_server: Server, repo: Repo) -> None:
    session = await shared_server.new_session(locationPath=str(repo.path))
    repo.git("branch", "older")
    repo.write("later.txt", "x\n")
    repo.commit("later")
    assert (await diff_of(shared_server, session))["files"] == []
    assert [file["path"] for file in (await diff_of(shared_server, session, base="older"))["files"]] == [
        "later.txt"
    ]
    path = f"/api/sessions/{session['id']}/diff"
    for base, status in (("nowhere", 404), ("--output=x", 400), ("a..b", 400), ("a\0b", 400)):
        await shared_server.call("GET", path, status, params={"base": base})
    assert not (repo.path / "x").exists()


async def test_a_guest_cannot_read_a_file_of_the_workspace_as_a_patch(
    shared_server: Server, repo: Repo
) -> None:
    first = repo.git("rev-list", "--max-parents=0", "HEAD").strip()
    repo.write("tracked.txt", "sesame\n")
    repo.commit("tracked")
    repo.write(".env", "KEY=sesame\n")
    session = await shared_server.new_session(locationPath=str(repo.path))
    path = f"/api/sessions/{session['id']}"
    share = await shared_server.call("POST", f"{path}/share", 201, json={})
    as_guest = {"Authorization": f"Bearer {share['token']}"}
    for query in ({}, {"base": first}, {"base": first, "patches": "false"}):
        refused = await shared_server.call("GET", f"{path}/diff", 403, params=query, headers=as_guest)
        assert refused["error"] == "forbidden"
    assert "sesame" in str(await diff_of(shared_server, session, base=first))


async def test_a_directory_without_git_has_no_diff(shared_server: Server, tmp_path: Path) -> None:
    directory = shared_server.workspace / f"{tmp_path.name}-plain"
    directory.mkdir()
    session = await shared_server.new_session(locationPath=str(directory))
    answer = await shared_server.call("GET", f"/api/sessions/{session['id']}/diff", 409)
    assert "not in a git repository" in answer["message"]


async def test_comments_reach_the_agent_as_one_message(shared_server: Server, repo: Repo) -> None:
    await define_scripted(shared_server)
    repo.write("readme.txt", "hello\nthere\n")
    session = await shared_server.new_session(locationPath=str(repo.path), agentId="scripted")
    conversation = SessionClient(shared_server, session)
    body = {
        "text": "[[chunk thanks]]",
        "comments": [{"path": "readme.txt", "line": 2, "text": "name the subject"}],
        "promptId": "remarks",
    }
    path = f"/api/sessions/{session['id']}/diff/comments"
    sent = await shared_server.call("POST", path, 202, json=body)
    assert sent["promptId"] == "remarks"
    repo.write("readme.txt", "hello\neverybody\n")  # the agent works meanwhile
    assert await shared_server.call("POST", path, 202, json=body) == sent
    prompt = await conversation.wait_for_event("user_prompt")
    assert prompt["data"]["text"] == "[[chunk thanks]]\n\n`readme.txt`, line 2:\n> +there\nname the subject"
    await conversation.wait_for_event("turn_end")
    assert [event["type"] for event in await conversation.events()].count("user_prompt") == 1
    await shared_server.call("POST", path, 400, json={"comments": []})
    await shared_server.call("DELETE", f"/api/sessions/{session['id']}")
