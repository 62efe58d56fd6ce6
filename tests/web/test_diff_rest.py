"""The diff of a session over REST, and comments on it as one message."""

from pathlib import Path
from typing import Any

import pytest

from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def repo(house: Server, tmp_path: Path) -> Repo:
    return Repo(house.workspace / tmp_path.name)


async def diff_of(house: Server, session: dict[str, Any], **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = await house.call("GET", f"/api/sessions/{session['id']}/diff", params=query)
    return found


async def test_r83_the_changes_of_a_workspace_are_served(house: Server, repo: Repo) -> None:
    session = await house.new_session(locationPath=str(repo.path))
    repo.write("readme.txt", "hello\nthere\n")
    repo.write("new.txt", "new\n")
    found = await diff_of(house, session)
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
    light = await diff_of(house, session, patches="false")
    assert [file["patch"] for file in light["files"]] == ["", ""]


async def test_a_base_can_be_named_but_nothing_else(house: Server, repo: Repo) -> None:
    session = await house.new_session(locationPath=str(repo.path))
    repo.git("branch", "older")
    repo.write("later.txt", "x\n")
    repo.commit("later")
    assert (await diff_of(house, session))["files"] == []
    assert [file["path"] for file in (await diff_of(house, session, base="older"))["files"]] == ["later.txt"]
    path = f"/api/sessions/{session['id']}/diff"
    for base, status in (("nowhere", 404), ("--output=x", 400), ("a..b", 400), ("a\0b", 400)):
        await house.call("GET", path, status, params={"base": base})
    assert not (repo.path / "x").exists()


async def test_a_share_link_reads_no_file_of_the_workspace_as_a_patch(house: Server, repo: Repo) -> None:
    first = repo.git("rev-list", "--max-parents=0", "HEAD").strip()
    repo.write("tracked.txt", "sesame\n")
    repo.commit("tracked")
    repo.write(".env", "KEY=sesame\n")
    session = await house.new_session(locationPath=str(repo.path))
    path = f"/api/sessions/{session['id']}"
    share = await house.call("POST", f"{path}/share", 201, json={})
    as_guest = {"Authorization": f"Bearer {share['token']}"}
    for query in ({}, {"base": first}, {"base": first, "patches": "false"}):
        refused = await house.call("GET", f"{path}/diff", 403, params=query, headers=as_guest)
        assert refused["error"] == "forbidden"
    assert "sesame" in str(await diff_of(house, session, base=first))


async def test_a_directory_without_git_has_no_diff(house: Server, tmp_path: Path) -> None:
    place = house.workspace / f"{tmp_path.name}-plain"
    place.mkdir()
    session = await house.new_session(locationPath=str(place))
    answer = await house.call("GET", f"/api/sessions/{session['id']}/diff", 409)
    assert "not in a git repository" in answer["message"]


async def test_comments_reach_the_agent_as_one_message(house: Server, repo: Repo) -> None:
    await define_scripted(house)
    repo.write("readme.txt", "hello\nthere\n")
    session = await house.new_session(locationPath=str(repo.path), agentId="scripted")
    talk = SessionClient(house, session)
    body = {
        "text": "[[chunk thanks]]",
        "comments": [{"path": "readme.txt", "line": 2, "text": "say who"}],
        "promptId": "remarks",
    }
    path = f"/api/sessions/{session['id']}/diff/comments"
    for _ in range(2):  # and once, however often it is sent
        assert (await house.call("POST", path, 202, json=body))["promptId"] == "remarks"
    prompt = await talk.wait_for_event("user_prompt")
    assert prompt["data"]["text"] == "[[chunk thanks]]\n\n`readme.txt`, line 2:\n> +there\nsay who"
    await talk.wait_for_event("turn_end")
    assert [event["type"] for event in await talk.events()].count("user_prompt") == 1
    await house.call("POST", path, 400, json={"comments": []})
    await house.call("DELETE", f"/api/sessions/{session['id']}")
