"""Sessions in worktrees: the worktree stays when its session ends, and a missing one is reported."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.registered_repository import RegisteredRepository
from support.repositories import Repo
from support.server import Server


@pytest.fixture
async def repository(server: Server, workspace: Path) -> RegisteredRepository:
    return await RegisteredRepository.register(server, Repo(workspace / "repo"))


async def new_session(repository: RegisteredRepository, expect: int = 201, **body: Any) -> Any:
    """Create a session of the repository without an agent."""
    body = {"type": "worktree", "repoId": repository.id, **body}
    return await repository.server.call("POST", "/api/sessions", expect, json=body)


async def detail(repository: RegisteredRepository, session: dict[str, Any]) -> Any:
    return await repository.server.call("GET", f"/api/sessions/{session['id']}")


async def test_a_session_is_created_in_the_repository_or_in_one_of_its_worktrees(
    repository: RegisteredRepository,
) -> None:
    path = (await repository.add(branch="topic"))["path"]
    main = await new_session(repository)
    named = await new_session(repository, worktreeId="topic")
    by_branch = await new_session(repository, branch="topic")
    by_path = await new_session(repository, worktree={"mode": "directory", "path": path})
    assert (main["type"], main["locationPath"]) == ("worktree", str(repository.repo.path))
    for session in (named, by_branch, by_path):
        shown = (session["type"], session["worktreeId"], session["locationPath"], session["title"])
        assert shown == ("worktree", "topic", path, "topic")
    assert (await detail(repository, named))["worktree"]["branch"] == "topic"
    assert (await detail(repository, main))["worktree"]["isMain"] is True
    await new_session(repository, 404, worktreeId="nowhere")
    await new_session(
        repository, 400, worktree={"mode": "directory", "path": str(repository.repo.path.parent)}
    )


async def test_a_session_can_be_created_with_a_new_worktree(repository: RegisteredRepository) -> None:
    repository.repo.git("branch", "old")
    new = await new_session(repository, worktree={"branch": "feat/a", "base": "main"})
    old = await new_session(repository, worktree={"branch": "old", "mode": "existing"})
    prompted = await new_session(repository, worktree={"prompt": "Make it faster"})
    either = await new_session(repository, branch="brand-new")
    ids = [session["worktreeId"] for session in (new, old, prompted, either)]
    assert ids == ["feat-a", "old", "make-it-faster", "brand-new"]
    await new_session(repository, 409, worktree={"branch": "old"})
    await repository.server.call("POST", "/api/sessions", 400, json={"worktree": {"branch": "x"}})


async def test_a_session_that_cannot_be_created_leaves_no_worktree_and_no_branch(
    repository: RegisteredRepository,
) -> None:
    before = repository.repo.git("for-each-ref")
    await new_session(repository, 400, agentId="unknown", worktree={"branch": "topic"})
    assert len(await repository.list()) == 1
    assert repository.repo.git("for-each-ref") == before
    assert not repository.repo.path.with_name("repo.worktrees").joinpath("topic").exists()


async def test_a_session_requested_three_times_at_once_gets_one_worktree(
    repository: RegisteredRepository,
) -> None:
    body = {"type": "worktree", "repoId": repository.id, "worktree": {"prompt": "only one"}}
    posts = (
        repository.server.http.post("/api/sessions", json=body, headers={"Idempotency-Key": "k"})
        for _ in range(3)
    )
    answers = await asyncio.gather(*posts)
    assert len({answer.text for answer in answers}) == 1
    assert [each["name"] for each in await repository.list()] == ["main", "only-one"]
    assert Path(answers[0].json()["locationPath"]).is_dir()


async def test_a_worktree_stays_when_its_session_is_completed_or_purged(
    repository: RegisteredRepository,
) -> None:
    session = await new_session(repository, worktree={"branch": "topic"})
    path = Path(session["locationPath"])
    (path / "work").write_text("kept")
    await repository.server.new_terminal(session["id"])
    await repository.server.call("POST", f"/api/sessions/{session['id']}/complete")
    assert (path / "work").read_text() == "kept"
    await repository.server.call("DELETE", f"/api/sessions/{session['id']}?purge=true")
    assert (path / "work").read_text() == "kept"
    assert [each["name"] for each in await repository.list()] == ["main", "topic"]


async def test_a_worktree_deleted_under_a_worker_is_reported_and_nothing_is_pruned(
    repository: RegisteredRepository,
) -> None:
    session = await new_session(repository, worktree={"branch": "topic"})
    terminal = await repository.server.new_terminal(session["id"])
    shutil.rmtree(session["locationPath"])
    problem = f"the directory {session['locationPath']} is gone"
    assert (await detail(repository, session))["worktree"]["problem"] == problem
    assert (await repository.list())[1]["problem"] == problem
    assert (repository.repo.git_dir / "worktrees" / "topic").is_dir()
    assert "topic" in repository.repo.git("branch")
    path = f"/api/sessions/{session['id']}/workers"
    running = await repository.server.call("GET", f"{path}/{terminal['id']}")
    assert running["state"] == "active"
    added = await repository.server.http.post(path, json={"type": "terminal"})
    assert added.status_code == 404
    assert "there is no directory" in added.json()["message"]


async def test_a_stale_lock_is_reported_and_not_removed(repository: RegisteredRepository) -> None:
    session = await new_session(repository, worktree={"branch": "topic"})
    lock = repository.repo.git_dir / "worktrees" / "topic" / "index.lock"
    lock.touch()
    shown = (await detail(repository, session))["worktree"]
    assert str(lock) in shown["problem"]
    assert shown["dirty"] is False
    assert lock.exists()


async def test_a_missing_repository_is_reported_and_the_check_writes_nothing(
    repository: RegisteredRepository,
) -> None:
    session = await new_session(repository, worktree={"branch": "topic"})
    repository.repo.path.rename(repository.repo.path.with_name("moved"))
    shown = await detail(repository, session)
    assert "is gone" in shown["worktree"]["problem"]
    assert (shown["status"], shown["worktree"]["name"]) == ("active", "topic")
    listing = await repository.server.http.get(repository.url)
    assert (listing.status_code, listing.json()["error"]) == (502, "remote_fault")
    await repository.add(502, branch="other")
    await repository.remove("topic", 502, force=True)
    assert Path(session["locationPath"]).is_dir()
    assert not repository.repo.path.exists()
    repository.repo.path.with_name("moved").rename(repository.repo.path)
    assert (await detail(repository, session))["worktree"]["problem"] is None
    assert [each["name"] for each in await repository.list()] == ["main", "topic"]


HOSTILE = ["--output=x", "-x", ".git", "..", "a\0b", "a\nb", "x" * 300, "a/../b", "/etc"]


async def test_hostile_names_are_refused_and_nothing_is_created(
    repository: RegisteredRepository, workspace: Path
) -> None:
    before = repository.repo.git("for-each-ref"), sorted(workspace.rglob("*"))
    for text in HOSTILE:
        await repository.add(400, branch=text)
        await repository.add(400, branch="fine", name=text)
        await repository.add(400, branch="fine", base=text)
        await new_session(repository, 400, worktree={"branch": text})
        # Dots are encoded too, because an HTTP client resolves `..` itself.
        encoded = "".join(f"%{byte:02x}" for byte in text.encode())
        removed = await repository.server.http.delete(f"{repository.url}/{encoded}")
        assert removed.status_code in (404, 405)  # 405 if the name has a slash, which makes it another route
    elsewhere = workspace / "elsewhere"
    elsewhere.mkdir()
    (workspace / "repo.worktrees").symlink_to(elsewhere)
    await repository.add(400, branch="fine")
    assert not list(elsewhere.iterdir())
    elsewhere.rmdir()
    (workspace / "repo.worktrees").unlink()
    assert (repository.repo.git("for-each-ref"), sorted(workspace.rglob("*"))) == before


async def test_a_repository_keeps_the_git_directory_it_was_registered_with(
    repository: RegisteredRepository, workspace: Path
) -> None:
    """A `.git` file that replaces the directory after the registration is not followed."""
    other_repo = Repo(workspace / "evil")
    git_dir = repository.repo.git_dir
    repository.repo.git("worktree", "add", "-q", str(workspace / "linked"))
    refused = await repository.server.call(
        "POST", "/api/repositories", 400, json={"path": str(workspace / "linked")}
    )
    assert "is a worktree" in refused["message"]
    git_dir.rename(workspace / "real.git")
    git_dir.write_text(f"gitdir: {other_repo.git_dir}\n")
    assert (await repository.server.http.get(repository.url)).status_code == 502
