"""Worktrees over REST: created completely or not at all, and removed without loss or to the trash."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.registered_repository import RegisteredRepository, directory_contents
from support.repositories import Repo
from support.server import Server


@pytest.fixture
async def repository(server: Server, workspace: Path) -> RegisteredRepository:
    return await RegisteredRepository.register(server, Repo(workspace / "repo"))


# Creating


async def test_a_new_branch_gets_a_worktree_beside_the_repository(
    repository: RegisteredRepository, workspace: Path
) -> None:
    created = await repository.add(branch="feat/login", base="main")
    path = workspace / "repo.worktrees" / "feat-login"
    assert created == {
        "name": "feat-login",
        "path": str(path),
        "branch": "feat/login",
        "isMain": False,
        "dirty": False,
        "changes": [],
        "ahead": 0,
        "behind": 0,
        "problem": None,
    }
    assert (path / "readme.txt").read_text() == "hello\n"
    assert [each["name"] for each in await repository.list()] == ["main", "feat-login"]
    assert repository.repo.git("branch", "--show-current", cwd=path) == "feat/login\n"


async def test_a_new_worktree_has_mode_0750(repository: RegisteredRepository) -> None:
    path = Path((await repository.add(branch="topic"))["path"])
    for directory in (path, path.parent):
        assert directory.stat().st_mode & 0o777 == 0o750


async def test_a_repository_that_is_the_root_has_ignored_worktrees_inside(
    server: Server, workspace: Path
) -> None:
    repository = await RegisteredRepository.register(server, Repo(workspace))
    created = await repository.add(branch="topic")
    assert created["path"] == str(workspace / ".worktrees" / "topic")
    assert repository.repo.git("status", "--porcelain") == ""


async def test_an_existing_branch_is_checked_out_once_and_refused_a_second_time(
    repository: RegisteredRepository,
) -> None:
    repository.repo.git("branch", "old")
    created = await repository.add(branch="old", existing=True)
    assert created["branch"] == "old"
    refused = await repository.add(409, branch="old", existing=True, name="again")
    assert created["path"] in refused["message"]
    assert len(await repository.list()) == 2


async def test_an_existing_branch_may_be_a_remote_branch(
    repository: RegisteredRepository, tmp_path: Path
) -> None:
    other = Repo(tmp_path / "other")
    other.git("checkout", "-q", "-b", "theirs")
    commit = other.commit("theirs")
    repository.repo.git("remote", "add", "origin", str(other.path))
    repository.repo.git("fetch", "-q", "origin")
    created = await repository.add(branch="theirs", existing=True)
    assert repository.repo.git("rev-parse", "HEAD", cwd=Path(created["path"])).strip() == commit


async def test_an_existing_branch_is_neither_created_again_nor_changed(
    repository: RegisteredRepository,
) -> None:
    repository.repo.git("branch", "taken")
    before = repository.repo.git("for-each-ref")
    refused = await repository.add(409, branch="taken")
    assert "exists already" in refused["message"]
    assert (await repository.add(409, branch="taken/below"))["error"] == "conflict"
    assert repository.repo.git("for-each-ref") == before
    assert len(await repository.list()) == 1


async def test_a_missing_branch_or_base_is_refused(repository: RegisteredRepository) -> None:
    assert (await repository.add(400, branch="a", base="nowhere"))["message"].endswith(
        "has no commit nowhere"
    )
    assert (await repository.add(404, branch="nowhere", existing=True))["error"] == "not_found"
    assert repository.repo.git("branch") == "* main\n"


async def test_the_name_comes_from_the_prompt_and_is_unique(repository: RegisteredRepository) -> None:
    first = await repository.add(prompt="Fix the *failing* tests, please! And then the rest of it")
    second = await repository.add(prompt="Fix the *failing* tests, please! And then the rest of it")
    nameless = await repository.add(prompt="你好")
    assert first["name"] == first["branch"] == "fix-the-failing-tests-please-and"
    assert second["name"] == "fix-the-failing-tests-please-and-2"
    assert nameless["name"] == "work"


async def test_only_files_that_worktreeinclude_names_are_copied(repository: RegisteredRepository) -> None:
    repo = repository.repo
    repo.write(".gitignore", ".env*\nnode_modules/\nsecret\n")
    repo.write(".worktreeinclude", "# local settings\n.env*\n!.env.old\nconfig/*.local\n")
    repo.commit("ignore")
    repo.write(".env", "KEY=1\n").chmod(0o600)
    repo.write(".env.old", "KEY=0\n")
    repo.write("config/app.local", "x")
    repo.write("secret", "s")
    repo.write("node_modules/a.js", "x")
    (repo.path / ".env.link").symlink_to(".env")
    (repo.path / ".env.out").symlink_to("/etc/hostname")
    path = Path((await repository.add(branch="topic"))["path"])
    assert (path / ".env").read_text() == "KEY=1\n"
    assert (path / ".env").stat().st_mode & 0o777 == 0o600
    assert (path / "config" / "app.local").read_text() == "x"
    assert (path / ".env.link").is_symlink()
    left_out = (".env.old", ".env.out", "secret", "node_modules")
    assert not any(os.path.lexists(path / name) for name in left_out)


async def test_worktreeinclude_writes_nothing_through_a_link_of_the_branch(
    repository: RegisteredRepository, workspace: Path
) -> None:
    outside = workspace / "outside"
    outside.mkdir()
    repo = repository.repo
    repo.git("checkout", "-q", "-b", "hostile")
    (repo.path / "config").symlink_to(outside)
    repo.commit("a link")
    repo.git("checkout", "-q", "main")
    repo.write(".worktreeinclude", "config/\n")
    repo.write("config/authorized_keys", "planted")
    created = await repository.add(branch="hostile", existing=True)
    assert (Path(created["path"]) / "config").is_symlink()
    assert list(outside.iterdir()) == []


async def test_the_setup_command_runs_in_the_worktree_with_the_repositorys_environment(
    repository: RegisteredRepository, server: Server
) -> None:
    await repository.set(env={"COLOUR": "green"}, setup='echo "$COLOUR" > made; pwd; echo "$BULLPEN_TOKEN"')
    path = Path((await repository.add(branch="topic"))["path"])
    assert (path / "made").read_text() == "green\n"
    record = server.home / "logs" / "worktrees" / repository.id / "topic.setup.log"
    assert record.read_text() == f"{path}\n\n"


async def test_a_failed_setup_is_undone_and_its_output_is_shown(
    repository: RegisteredRepository, workspace: Path
) -> None:
    before = repository.repo.git("for-each-ref")
    await repository.set(setup="touch left; echo no such package >&2; exit 3")
    refused = await repository.add(409, branch="topic")
    assert "ended with code 3" in refused["message"]
    assert refused["details"]["output"] == "no such package\n"
    assert not (workspace / "repo.worktrees").exists()
    assert not list((repository.repo.git_dir / "worktrees").glob("*"))
    assert repository.repo.git("for-each-ref") == before
    await repository.set(setup="")
    assert (await repository.add(branch="topic"))["name"] == "topic"


async def test_a_repeated_request_creates_one_worktree(
    repository: RegisteredRepository, server: Server
) -> None:
    answers = await asyncio.gather(
        *(
            server.http.post(repository.url, json={"branch": "topic"}, headers={"Idempotency-Key": "k"})
            for _ in range(3)
        )
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert len(await repository.list()) == 2
    other = await server.http.post(repository.url, json={"branch": "b"}, headers={"Idempotency-Key": "k"})
    assert other.status_code == 409


async def test_a_worktree_in_creation_shows_its_progress(repository: RegisteredRepository) -> None:
    await repository.set(setup="until [ -e go ]; do sleep 0.02; done")
    adding = asyncio.ensure_future(repository.add(branch="topic"))
    async with asyncio.timeout(30):
        while not (making := (await repository.get())["making"]) or "setup" not in making[0]["progress"]:
            await asyncio.sleep(0.02)
    assert making == [{"name": "topic", "progress": "running the setup command"}]
    path = Path(next(each["path"] for each in await repository.list() if each["name"] == "topic"))
    (path / "go").touch()
    await adding
    assert (await repository.get())["making"] == []


# Removing


async def test_a_clean_worktree_is_removed_and_its_branch_stays(repository: RegisteredRepository) -> None:
    path = Path((await repository.add(branch="topic"))["path"])
    removed = await repository.remove("topic")
    assert (removed["name"], removed["branch"], removed["path"]) == ("topic", "topic", str(path))
    assert not path.exists()
    assert [each["name"] for each in await repository.list()] == ["main"]
    assert "topic" in repository.repo.git("branch")
    await repository.remove("topic", 404)


async def test_removing_a_dirty_worktree_is_refused_with_the_list(repository: RegisteredRepository) -> None:
    path = Path((await repository.add(branch="topic"))["path"])
    (path / "readme.txt").write_text("changed\n")
    (path / "new file").write_text("x")
    before = directory_contents(path)
    [topic] = [each for each in await repository.list() if each["name"] == "topic"]
    assert topic["changes"] == [" M readme.txt", "?? new file"]
    refused = await repository.remove("topic", 409)
    assert "2 uncommitted changes" in refused["message"]
    assert refused["details"] == {
        "changes": [" M readme.txt", "?? new file"],
        "commits": [],
        "unfinished": None,
    }
    assert directory_contents(path) == before


async def test_removing_commits_that_are_nowhere_else_is_refused_until_they_are_pushed(
    repository: RegisteredRepository, tmp_path: Path
) -> None:
    path = Path((await repository.add(branch="topic"))["path"])
    (path / "work").write_text("x")
    commit = repository.repo.commit("the work", cwd=path)
    refused = await repository.remove("topic", 409)
    assert refused["details"]["commits"] == [f"{commit[:7]} the work"]
    bare = tmp_path / "bare.git"
    repository.repo.git("init", "-q", "--bare", str(bare))
    repository.repo.git("remote", "add", "origin", str(bare))
    repository.repo.git("push", "-q", "origin", "topic")
    await repository.remove("topic")


async def test_forced_removal_is_undone_byte_for_byte(
    repository: RegisteredRepository, server: Server
) -> None:
    path = Path((await repository.add(branch="topic"))["path"])
    repository.repo.write(".git/info/exclude", "ignored\n")
    repository.repo.commit("own", cwd=path)
    (path / "staged").write_text("staged once")
    repository.repo.git("add", "staged", cwd=path)
    (path / "staged").write_text("and changed")
    (path / "untracked").write_bytes(bytes(range(256)))
    (path / "ignored").write_text("kept too")
    (path / "tool").write_text("#!/bin/sh\n")
    (path / "tool").chmod(0o755)
    (path / "link").symlink_to("nowhere")
    (path / "empty").mkdir()
    admin = repository.repo.git_dir / "worktrees" / "topic"
    status = repository.repo.git("status", "--porcelain=v2", "--branch", cwd=path)
    tree, known = directory_contents(path), directory_contents(admin)

    removed = await repository.remove("topic", force=True)
    assert not path.exists() and not admin.exists()
    assert [each["id"] for each in (await repository.get())["trash"]] == [removed["id"]]
    repository.repo.git("branch", "-D", "topic")
    repository.repo.git("reflog", "expire", "--all", "--expire=now")
    repository.repo.git("gc", "-q", "--prune=now")
    await server.restart()

    assert (await repository.restore("topic"))["branch"] == "topic"
    assert directory_contents(path) == tree
    assert directory_contents(admin) == known
    assert repository.repo.git("status", "--porcelain=v2", "--branch", cwd=path) == status
    assert repository.repo.git("show", ":staged", cwd=path) == "staged once"
    repository.repo.git("fsck", "--strict")
    assert (await repository.get())["trash"] == []
    assert "refs/bullpen" not in repository.repo.git("for-each-ref")


async def test_an_obstacle_to_a_restore_is_named_and_nothing_is_moved(
    repository: RegisteredRepository,
) -> None:
    path = Path((await repository.add(branch="topic"))["path"])
    await repository.remove("topic")
    path.mkdir(parents=True)
    assert str(path) in (await repository.restore("topic", 409))["message"]
    path.rmdir()
    repository.repo.git("worktree", "add", "-q", str(path.with_name("elsewhere")), "topic")
    assert "checked out" in (await repository.restore("topic", 409))["message"]
    repository.repo.git("worktree", "remove", str(path.with_name("elsewhere")))
    await repository.restore("topic")
    await repository.restore("topic", 404)


async def test_the_id_selects_one_of_two_removed_worktrees_with_one_name(
    repository: RegisteredRepository,
) -> None:
    await repository.add(branch="one", name="spot")
    first = await repository.remove("spot")
    await repository.add(branch="two", name="spot")
    await repository.remove("spot")
    assert (await repository.restore("spot", id=first["id"]))["branch"] == "one"


async def test_the_trash_is_emptied_after_seven_days_and_not_before(
    repository: RegisteredRepository, server: Server
) -> None:
    await repository.add(branch="old")
    await repository.add(branch="fresh")
    old = (await repository.remove("old"))["id"]
    fresh = (await repository.remove("fresh"))["id"]
    record = server.home / "trash" / old / "record.json"
    shown = json.loads(record.read_text())
    record.write_text(json.dumps(shown | {"removed_at": shown["removed_at"] - 7 * 24 * 3600 * 1000}))
    await server.restart()
    async with asyncio.timeout(30):
        while record.parent.exists():
            await asyncio.sleep(0.02)
    assert [each["id"] for each in (await repository.get())["trash"]] == [fresh]
    async with asyncio.timeout(30):
        while old in repository.repo.git("for-each-ref"):
            await asyncio.sleep(0.02)
    assert fresh in repository.repo.git("for-each-ref")


async def test_cleanup_runs_before_removal_and_its_failure_keeps_the_worktree(
    repository: RegisteredRepository,
) -> None:
    path = Path((await repository.add(branch="topic"))["path"])
    await repository.set(cleanup="pwd > seen; exit 1")
    refused = await repository.remove("topic", 409)
    assert "the cleanup command ended with code 1" in refused["message"]
    assert (path / "seen").read_text() == f"{path}\n"
    assert path.is_dir()
    await repository.remove("topic", force=True)
    assert not path.exists()


async def test_a_worktree_with_a_running_worker_is_not_removed(
    repository: RegisteredRepository, server: Server
) -> None:
    created = await repository.add(branch="topic")
    session = await server.new_session(
        type="worktree", repoId=repository.id, worktreeId="topic", locationPath=None
    )
    terminal = await server.new_terminal(session["id"])
    refused = await repository.remove("topic", 409, force=True)
    assert "end it first" in refused["message"]
    assert Path(created["path"]).is_dir()
    await server.call("DELETE", f"/api/sessions/{session['id']}/workers/{terminal['id']}")
    await repository.remove("topic")


async def test_a_worktree_with_a_worker_of_a_session_in_another_directory_is_not_removed(
    repository: RegisteredRepository, server: Server
) -> None:
    path = Path((await repository.add(branch="topic"))["path"])
    (path / "inner").mkdir()
    session = await server.new_session(title="the team")
    worker = await server.new_terminal(session["id"], role="tester", workspace=str(path / "inner"))
    refused = await repository.remove("topic", 409, force=True)
    assert refused["message"] == f"tester of the session the team works in {path}; end it first"
    assert (path / "inner").is_dir()
    await server.call("DELETE", f"/api/sessions/{session['id']}/workers/{worker['id']}")
    await server.new_terminal(session["id"], role="tester", workspace=str(path.parent))
    await repository.remove("topic", force=True)


async def test_a_worktree_in_which_a_worker_started_during_its_cleanup_is_not_removed(
    repository: RegisteredRepository, server: Server
) -> None:
    path = Path((await repository.add(branch="topic"))["path"])
    await repository.set(cleanup="touch cleaning; until [ -e go ]; do sleep 0.02; done")
    removing = asyncio.ensure_future(repository.remove("topic", 409))
    async with asyncio.timeout(30):
        while not (path / "cleaning").exists():
            await asyncio.sleep(0.02)
    session = await server.new_session(
        type="worktree", repoId=repository.id, worktreeId="topic", locationPath=None
    )
    await server.new_terminal(session["id"], role="latecomer")
    (path / "go").touch()
    assert "latecomer" in (await removing)["message"]
    assert path.is_dir()


async def test_the_repositorys_own_directory_is_never_removed(repository: RegisteredRepository) -> None:
    await repository.remove("main", 409, force=True)
    assert (repository.repo.path / "readme.txt").exists()


@pytest.mark.parametrize("victim", ["outside", "repo", "plain"])
async def test_a_worktree_whose_git_file_names_another_directory_is_not_removed(
    repository: RegisteredRepository, tmp_path: Path, workspace: Path, victim: str
) -> None:
    """An agent can write `.git/worktrees/topic/gitdir`, and name the home directory in it."""
    await repository.add(branch="topic")
    target = {"outside": tmp_path / "precious", "repo": workspace, "plain": workspace / "plain"}[victim]
    target.mkdir(exist_ok=True)
    (target / "file").write_text("precious")
    (repository.repo.git_dir / "worktrees" / "topic" / "gitdir").write_text(f"{target}/.git\n")
    answer = await repository.server.http.delete(f"{repository.url}/topic", params={"force": "true"})
    assert answer.status_code in (403, 409)
    assert (target / "file").read_text() == "precious"


@pytest.fixture
async def around_data(workspace: Path) -> AsyncIterator[RegisteredRepository]:
    """Register a repository at a server whose data directory is inside the workspace root."""
    server = Server(workspace / "holder" / "data", workspace)
    server.home.parent.mkdir()
    await server.start()
    yield await RegisteredRepository.register(server, Repo(workspace / "repo"))
    await server.close()


@pytest.mark.parametrize("victim", ["holder", "holder/data", "holder/data/logs"])
async def test_a_worktree_around_at_or_in_the_data_directory_is_not_removed(
    around_data: RegisteredRepository, workspace: Path, victim: str
) -> None:
    await around_data.add(branch="topic")
    pointer = around_data.repo.git_dir / "worktrees" / "topic"
    target = workspace / victim
    (target / ".git").write_text(f"gitdir: {pointer}\n")
    (pointer / "gitdir").write_text(f"{target}/.git\n")
    assert "belongs to Bullpen" in (await around_data.remove("topic", 403, force=True))["message"]
    assert (target / ".git").exists()


async def test_a_worktree_is_not_restored_into_the_data_directory(
    around_data: RegisteredRepository, workspace: Path
) -> None:
    path = Path((await around_data.add(branch="topic"))["path"])
    await around_data.remove("topic")
    path.parent.rmdir()
    path.parent.symlink_to(around_data.server.home)
    assert "belongs to Bullpen" in (await around_data.restore("topic", 403))["message"]
    assert not (around_data.server.home / "topic").exists()
    path.parent.unlink()
    await around_data.restore("topic")
    assert path.is_dir()


async def test_a_trash_on_another_disk_gets_a_complete_copy(workspace: Path) -> None:
    shm = Path("/dev/shm")
    assert os.stat(shm).st_dev != os.stat(workspace).st_dev
    home = shm / f"bullpen-test-{os.getpid()}"
    server = Server(home, workspace)
    await server.start()
    try:
        repository = await RegisteredRepository.register(server, Repo(workspace / "repo"))
        path = Path((await repository.add(branch="topic"))["path"])
        (path / "untracked").write_text("x")
        (path / "link").symlink_to("nowhere")
        os.mkfifo(path / "fifo")
        before = directory_contents(path)
        await repository.remove("topic", force=True)
        assert not path.exists()
        await repository.restore("topic")
        assert directory_contents(path) == before
    finally:
        await server.close()
        import shutil

        shutil.rmtree(home)
        home.with_suffix(".out").unlink()


# Settings of a repository


async def test_settings_of_a_repository_are_kept_and_its_environment_values_are_not_shown(
    repository: RegisteredRepository, server: Server
) -> None:
    shown = await repository.set(
        env={"KEY": "sekret", "OTHER": "x"}, setup="make", agentId="demo", name="site"
    )
    shown = await repository.set(env={"OTHER": None})
    assert (shown["env"], shown["setup"], shown["agentId"], shown["name"]) == (
        ["KEY"],
        "make",
        "demo",
        "site",
    )
    await server.restart()
    assert (await server.call("GET", f"/api/repositories/{repository.id}")) == shown
    for invalid in ({"env": {"BULLPEN_TOKEN": "x"}}, {"env": {"A=B": "x"}}, {"setup": "a\0b"}):
        await server.call("PATCH", f"/api/repositories/{repository.id}", 400, json=invalid)
    await server.call("PATCH", f"/api/repositories/{repository.id}", 404, json={"agentId": "unknown"})


async def test_concurrent_changes_of_a_repository_are_all_kept(
    repository: RegisteredRepository, server: Server
) -> None:
    changes: list[dict[str, Any]] = [{"env": {f"KEY_{n}": "x"}} for n in range(8)]
    changes += [{"queue": {"delay_seconds": 5}}, {"queue": {"max_size": 3}}, {"setup": "make"}]
    await asyncio.gather(*(repository.set(**change) for change in changes))
    for _ in range(2):
        shown = await server.call("GET", f"/api/repositories/{repository.id}")
        assert (shown["env"], shown["setup"]) == ([f"KEY_{n}" for n in range(8)], "make")
        assert (shown["queue"]["delay_seconds"], shown["queue"]["max_size"]) == (5, 3)
        await server.restart()


async def test_sessions_use_the_default_agent_and_environment_of_their_repository(
    repository: RegisteredRepository, server: Server
) -> None:
    await repository.set(agentId="demo", env={"COLOUR": "green"})
    session = await server.new_session(type="worktree", repoId=repository.id, locationPath=None)
    worker = await server.call("POST", f"/api/sessions/{session['id']}/workers", 201, json={"type": "agent"})
    assert worker["agentId"] == "demo"
    terminal = await server.new_terminal(session["id"])
    environment = Path(f"/proc/{terminal['pid']}/environ").read_bytes().split(b"\0")
    assert b"COLOUR=green" in environment
