"""Sessions in worktrees: made in one, never taking it along when they end, honest when it is gone."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.registered_repository import RegisteredRepository
from support.repositories import Repo
from support.server import Server


@pytest.fixture
async def house(server: Server, workspace: Path) -> RegisteredRepository:
    return await RegisteredRepository.register(server, Repo(workspace / "repo"))


async def new_session(house: RegisteredRepository, expect: int = 201, **body: Any) -> Any:
    return await house.server.call("POST", "/api/sessions", expect, json={"repoId": house.id, **body})


async def detail(house: RegisteredRepository, session: dict[str, Any]) -> Any:
    return await house.server.call("GET", f"/api/sessions/{session['id']}")


async def test_r70_a_session_is_made_in_the_repository_or_in_one_of_its_worktrees(
    house: RegisteredRepository,
) -> None:
    path = (await house.add(branch="topic"))["path"]
    main = await new_session(house)
    named = await new_session(house, worktreeId="topic")
    by_branch = await new_session(house, branch="topic")
    by_path = await new_session(house, worktree={"mode": "directory", "path": path})
    assert (main["type"], main["locationPath"]) == ("worktree", str(house.repo.path))
    for session in (named, by_branch, by_path):
        told = (session["type"], session["worktreeId"], session["locationPath"], session["title"])
        assert told == ("worktree", "topic", path, "topic")
    assert (await detail(house, named))["worktree"]["branch"] == "topic"
    assert (await detail(house, main))["worktree"]["isMain"] is True
    await new_session(house, 404, worktreeId="nowhere")
    await new_session(house, 400, worktree={"mode": "directory", "path": str(house.repo.path.parent)})


async def test_a_session_can_bring_its_worktree_along(house: RegisteredRepository) -> None:
    house.repo.git("branch", "old")
    new = await new_session(house, worktree={"branch": "feat/a", "base": "main"})
    old = await new_session(house, worktree={"branch": "old", "mode": "existing"})
    prompted = await new_session(house, worktree={"prompt": "Make it faster"})
    either = await new_session(house, branch="brand-new")
    ids = [session["worktreeId"] for session in (new, old, prompted, either)]
    assert ids == ["feat-a", "old", "make-it-faster", "brand-new"]
    await new_session(house, 409, worktree={"branch": "old"})
    await house.server.call("POST", "/api/sessions", 400, json={"worktree": {"branch": "x"}})


async def test_a_session_that_cannot_be_made_leaves_no_worktree_and_no_branch(
    house: RegisteredRepository,
) -> None:
    before = house.repo.git("for-each-ref")
    await new_session(house, 400, agentId="nobody", worktree={"branch": "topic"})
    assert len(await house.list()) == 1
    assert house.repo.git("for-each-ref") == before
    assert not house.repo.path.with_name("repo.worktrees").joinpath("topic").exists()


async def test_a_session_asked_for_twice_at_once_gets_one_worktree(house: RegisteredRepository) -> None:
    body = {"repoId": house.id, "worktree": {"prompt": "only one"}}
    posts = (
        house.server.http.post("/api/sessions", json=body, headers={"Idempotency-Key": "k"}) for _ in range(3)
    )
    answers = await asyncio.gather(*posts)
    assert len({answer.text for answer in answers}) == 1
    assert [each["name"] for each in await house.list()] == ["main", "only-one"]
    assert Path(answers[0].json()["locationPath"]).is_dir()


async def test_r66_worktrees_stay_when_a_session_ends_is_cancelled_or_purged(
    house: RegisteredRepository,
) -> None:
    session = await new_session(house, worktree={"branch": "topic"})
    path = Path(session["locationPath"])
    (path / "work").write_text("kept")
    await house.server.new_terminal(session["id"])
    await house.server.call("POST", f"/api/sessions/{session['id']}/complete")
    assert (path / "work").read_text() == "kept"
    await house.server.call("DELETE", f"/api/sessions/{session['id']}?purge=true")
    assert (path / "work").read_text() == "kept"
    assert [each["name"] for each in await house.list()] == ["main", "topic"]


async def test_r24_a_worktree_deleted_under_the_agent_is_said_and_nothing_is_pruned(
    house: RegisteredRepository,
) -> None:
    session = await new_session(house, worktree={"branch": "topic"})
    terminal = await house.server.new_terminal(session["id"])
    shutil.rmtree(session["locationPath"])
    problem = f"the directory {session['locationPath']} is gone"
    assert (await detail(house, session))["worktree"]["problem"] == problem
    assert (await house.list())[1]["problem"] == problem
    assert (house.repo.git_dir / "worktrees" / "topic").is_dir()
    assert "topic" in house.repo.git("branch")
    path = f"/api/sessions/{session['id']}/workers"
    still = await house.server.call("GET", f"{path}/{terminal['id']}")
    assert still["state"] == "active"
    added = await house.server.http.post(path, json={"type": "terminal"})
    assert added.status_code == 404
    assert "there is no directory" in added.json()["message"]


async def test_r24_a_stale_lock_is_said_and_left_alone(house: RegisteredRepository) -> None:
    session = await new_session(house, worktree={"branch": "topic"})
    lock = house.repo.git_dir / "worktrees" / "topic" / "index.lock"
    lock.touch()
    told = (await detail(house, session))["worktree"]
    assert str(lock) in told["problem"]
    assert told["dirty"] is False
    assert lock.exists()


async def test_r24_a_repository_that_is_gone_is_said_and_the_look_writes_nothing(
    house: RegisteredRepository,
) -> None:
    session = await new_session(house, worktree={"branch": "topic"})
    house.repo.path.rename(house.repo.path.with_name("moved"))
    told = await detail(house, session)
    assert "is gone" in told["worktree"]["problem"]
    assert (told["status"], told["worktree"]["name"]) == ("active", "topic")
    look = await house.server.http.get(house.url)
    assert (look.status_code, look.json()["error"]) == (502, "remote_fault")
    await house.add(502, branch="other")
    await house.remove("topic", 502, force=True)
    assert Path(session["locationPath"]).is_dir()
    assert not house.repo.path.exists()
    house.repo.path.with_name("moved").rename(house.repo.path)
    assert (await detail(house, session))["worktree"]["problem"] is None
    assert [each["name"] for each in await house.list()] == ["main", "topic"]


HOSTILE = ["--output=x", "-x", ".git", "..", "a\0b", "a\nb", "x" * 300, "a/../b", "/etc"]


async def test_s09_hostile_names_are_refused_and_nothing_is_made(
    house: RegisteredRepository, workspace: Path
) -> None:
    before = house.repo.git("for-each-ref"), sorted(workspace.rglob("*"))
    for text in HOSTILE:
        await house.add(400, branch=text)
        await house.add(400, branch="fine", name=text)
        await house.add(400, branch="fine", base=text)
        await new_session(house, 400, worktree={"branch": text})
        encoded = "".join(f"%{byte:02x}" for byte in text.encode())  # dots too: a client resolves `..` itself
        removed = await house.server.http.delete(f"{house.url}/{encoded}")
        assert removed.status_code in (404, 405)  # 405: a slash makes it another path
    elsewhere = workspace / "elsewhere"
    elsewhere.mkdir()
    (workspace / "repo.worktrees").symlink_to(elsewhere)
    await house.add(400, branch="fine")
    assert not list(elsewhere.iterdir())
    elsewhere.rmdir()
    (workspace / "repo.worktrees").unlink()
    assert (house.repo.git("for-each-ref"), sorted(workspace.rglob("*"))) == before


async def test_a_repository_is_known_by_the_git_directory_it_was_registered_with(
    house: RegisteredRepository, workspace: Path
) -> None:
    """A `.git` that is exchanged afterwards for a file that points elsewhere changes nothing."""
    evil = Repo(workspace / "evil")
    dot = house.repo.git_dir
    house.repo.git("worktree", "add", "-q", str(workspace / "linked"))
    refused = await house.server.call(
        "POST", "/api/repositories", 400, json={"path": str(workspace / "linked")}
    )
    assert "is a worktree" in refused["message"]
    dot.rename(workspace / "real.git")
    dot.write_text(f"gitdir: {evil.git_dir}\n")
    assert (await house.server.http.get(house.url)).status_code == 502
