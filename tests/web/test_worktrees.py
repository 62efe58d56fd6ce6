"""Worktrees over REST: made whole or not at all, removed only when nothing is lost, or to the trash."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.registered_repository import RegisteredRepository, directory_contents
from support.repositories import Repo
from support.server import Server


@pytest.fixture
async def house(server: Server, workspace: Path) -> RegisteredRepository:
    return await RegisteredRepository.register(server, Repo(workspace / "repo"))


# Making


async def test_a_new_branch_gets_a_worktree_beside_the_repository(
    house: RegisteredRepository, workspace: Path
) -> None:
    made = await house.add(branch="feat/login", base="main")
    path = workspace / "repo.worktrees" / "feat-login"
    assert made == {
        "name": "feat-login",
        "path": str(path),
        "branch": "feat/login",
        "isMain": False,
        "dirty": False,
        "ahead": 0,
        "behind": 0,
        "problem": None,
    }
    assert (path / "readme.txt").read_text() == "hello\n"
    assert [each["name"] for each in await house.list()] == ["main", "feat-login"]
    assert house.repo.git("branch", "--show-current", cwd=path) == "feat/login\n"


async def test_r60_a_workspace_bullpen_makes_has_mode_0750(house: RegisteredRepository) -> None:
    path = Path((await house.add(branch="topic"))["path"])
    for directory in (path, path.parent):
        assert directory.stat().st_mode & 0o777 == 0o750


async def test_a_repository_that_is_the_root_has_its_worktrees_inside_and_does_not_see_them(
    server: Server, workspace: Path
) -> None:
    house = await RegisteredRepository.register(server, Repo(workspace))
    made = await house.add(branch="topic")
    assert made["path"] == str(workspace / ".worktrees" / "topic")
    assert house.repo.git("status", "--porcelain") == ""


async def test_an_existing_branch_is_checked_out_and_a_second_time_refused(
    house: RegisteredRepository,
) -> None:
    house.repo.git("branch", "old")
    made = await house.add(branch="old", existing=True)
    assert made["branch"] == "old"
    refused = await house.add(409, branch="old", existing=True, name="again")
    assert made["path"] in refused["message"]
    assert len(await house.list()) == 2


async def test_an_existing_branch_may_be_one_of_the_remote(
    house: RegisteredRepository, tmp_path: Path
) -> None:
    other = Repo(tmp_path / "other")
    other.git("checkout", "-q", "-b", "theirs")
    head = other.commit("theirs")
    house.repo.git("remote", "add", "origin", str(other.path))
    house.repo.git("fetch", "-q", "origin")
    made = await house.add(branch="theirs", existing=True)
    assert house.repo.git("rev-parse", "HEAD", cwd=Path(made["path"])).strip() == head


async def test_r24_a_branch_that_exists_is_not_made_again_nor_changed(house: RegisteredRepository) -> None:
    house.repo.git("branch", "taken")
    before = house.repo.git("for-each-ref")
    refused = await house.add(409, branch="taken")
    assert "exists already" in refused["message"]
    assert (await house.add(409, branch="taken/below"))["error"] == "conflict"
    assert house.repo.git("for-each-ref") == before
    assert len(await house.list()) == 1


async def test_a_branch_or_base_that_is_not_there_is_said(house: RegisteredRepository) -> None:
    assert (await house.add(400, branch="a", base="nowhere"))["message"].endswith("has no commit nowhere")
    assert (await house.add(404, branch="nowhere", existing=True))["error"] == "not_found"
    assert house.repo.git("branch") == "* main\n"


async def test_the_name_comes_from_the_prompt_and_is_free(house: RegisteredRepository) -> None:
    first = await house.add(prompt="Fix the *failing* tests, please! And then the rest of it")
    again = await house.add(prompt="Fix the *failing* tests, please! And then the rest of it")
    nameless = await house.add(prompt="你好")
    assert first["name"] == first["branch"] == "fix-the-failing-tests-please-and"
    assert again["name"] == "fix-the-failing-tests-please-and-2"
    assert nameless["name"] == "work"


async def test_what_worktreeinclude_names_is_copied_and_nothing_else(house: RegisteredRepository) -> None:
    repo = house.repo
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
    path = Path((await house.add(branch="topic"))["path"])
    assert (path / ".env").read_text() == "KEY=1\n"
    assert (path / ".env").stat().st_mode & 0o777 == 0o600
    assert (path / "config" / "app.local").read_text() == "x"
    assert (path / ".env.link").is_symlink()
    left_out = (".env.old", ".env.out", "secret", "node_modules")
    assert not any(os.path.lexists(path / name) for name in left_out)


async def test_s10_worktreeinclude_writes_nothing_where_a_link_of_the_branch_leads(
    house: RegisteredRepository, workspace: Path
) -> None:
    outside = workspace / "outside"
    outside.mkdir()
    repo = house.repo
    repo.git("checkout", "-q", "-b", "hostile")
    (repo.path / "config").symlink_to(outside)
    repo.commit("a link")
    repo.git("checkout", "-q", "main")
    repo.write(".worktreeinclude", "config/\n")
    repo.write("config/authorized_keys", "planted")
    made = await house.add(branch="hostile", existing=True)
    assert (Path(made["path"]) / "config").is_symlink()
    assert list(outside.iterdir()) == []


async def test_the_setup_command_runs_in_the_worktree_with_the_repositorys_environment(
    house: RegisteredRepository, server: Server
) -> None:
    await house.set(env={"COLOUR": "green"}, setup='echo "$COLOUR" > made; pwd; echo "$BULLPEN_TOKEN"')
    path = Path((await house.add(branch="topic"))["path"])
    assert (path / "made").read_text() == "green\n"
    record = server.home / "logs" / "worktrees" / house.id / "topic.setup.log"
    assert record.read_text() == f"{path}\n\n"


async def test_a_setup_that_fails_takes_everything_back_and_says_what_it_said(
    house: RegisteredRepository, workspace: Path
) -> None:
    before = house.repo.git("for-each-ref")
    await house.set(setup="touch left; echo no such package >&2; exit 3")
    refused = await house.add(409, branch="topic")
    assert "ended with code 3" in refused["message"]
    assert refused["details"]["output"] == "no such package\n"
    assert not (workspace / "repo.worktrees").exists()
    assert not list((house.repo.git_dir / "worktrees").glob("*"))
    assert house.repo.git("for-each-ref") == before
    await house.set(setup="")
    assert (await house.add(branch="topic"))["name"] == "topic"


async def test_a_request_that_comes_twice_makes_one_worktree(
    house: RegisteredRepository, server: Server
) -> None:
    answers = await asyncio.gather(
        *(
            server.http.post(house.url, json={"branch": "topic"}, headers={"Idempotency-Key": "k"})
            for _ in range(3)
        )
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert len(await house.list()) == 2
    other = await server.http.post(house.url, json={"branch": "b"}, headers={"Idempotency-Key": "k"})
    assert other.status_code == 409


async def test_a_big_checkout_says_how_far_it_is(house: RegisteredRepository) -> None:
    await house.set(setup="until [ -e go ]; do sleep 0.02; done")
    adding = asyncio.ensure_future(house.add(branch="topic"))
    async with asyncio.timeout(30):
        while not (making := (await house.get())["making"]) or "setup" not in making[0]["progress"]:
            await asyncio.sleep(0.02)
    assert making == [{"name": "topic", "progress": "running the setup command"}]
    path = Path(next(each["path"] for each in await house.list() if each["name"] == "topic"))
    (path / "go").touch()
    await adding
    assert (await house.get())["making"] == []


# Removing


async def test_a_clean_worktree_is_removed_and_its_branch_stays(house: RegisteredRepository) -> None:
    path = Path((await house.add(branch="topic"))["path"])
    gone = await house.remove("topic")
    assert (gone["name"], gone["branch"], gone["path"]) == ("topic", "topic", str(path))
    assert not path.exists()
    assert [each["name"] for each in await house.list()] == ["main"]
    assert "topic" in house.repo.git("branch")
    await house.remove("topic", 404)


async def test_removing_a_dirty_worktree_is_refused_with_the_list(house: RegisteredRepository) -> None:
    path = Path((await house.add(branch="topic"))["path"])
    (path / "readme.txt").write_text("changed\n")
    (path / "new file").write_text("x")
    before = directory_contents(path)
    refused = await house.remove("topic", 409)
    assert "2 uncommitted changes" in refused["message"]
    assert refused["details"] == {
        "changes": [" M readme.txt", "?? new file"],
        "commits": [],
        "unfinished": None,
    }
    assert directory_contents(path) == before


async def test_removing_commits_that_are_nowhere_else_is_refused_until_they_are_pushed(
    house: RegisteredRepository, tmp_path: Path
) -> None:
    path = Path((await house.add(branch="topic"))["path"])
    (path / "work").write_text("x")
    head = house.repo.commit("the work", cwd=path)
    refused = await house.remove("topic", 409)
    assert refused["details"]["commits"] == [f"{head[:7]} the work"]
    bare = tmp_path / "bare.git"
    house.repo.git("init", "-q", "--bare", str(bare))
    house.repo.git("remote", "add", "origin", str(bare))
    house.repo.git("push", "-q", "origin", "topic")
    await house.remove("topic")


async def test_forced_removal_is_undone_byte_for_byte(house: RegisteredRepository, server: Server) -> None:
    path = Path((await house.add(branch="topic"))["path"])
    house.repo.write(".git/info/exclude", "ignored\n")
    house.repo.commit("own", cwd=path)
    (path / "staged").write_text("staged once")
    house.repo.git("add", "staged", cwd=path)
    (path / "staged").write_text("and changed")
    (path / "untracked").write_bytes(bytes(range(256)))
    (path / "ignored").write_text("kept too")
    (path / "tool").write_text("#!/bin/sh\n")
    (path / "tool").chmod(0o755)
    (path / "link").symlink_to("nowhere")
    (path / "empty").mkdir()
    admin = house.repo.git_dir / "worktrees" / "topic"
    status = house.repo.git("status", "--porcelain=v2", "--branch", cwd=path)
    tree, known = directory_contents(path), directory_contents(admin)

    gone = await house.remove("topic", force=True)
    assert not path.exists() and not admin.exists()
    assert [each["id"] for each in (await house.get())["trash"]] == [gone["id"]]
    house.repo.git("branch", "-D", "topic")
    house.repo.git("reflog", "expire", "--all", "--expire=now")
    house.repo.git("gc", "-q", "--prune=now")
    await server.restart()

    assert (await house.restore("topic"))["branch"] == "topic"
    assert directory_contents(path) == tree
    assert directory_contents(admin) == known
    assert house.repo.git("status", "--porcelain=v2", "--branch", cwd=path) == status
    assert house.repo.git("show", ":staged", cwd=path) == "staged once"
    house.repo.git("fsck", "--strict")
    assert (await house.get())["trash"] == []
    assert "refs/bullpen" not in house.repo.git("for-each-ref")


async def test_what_is_in_the_way_of_a_restore_is_named_and_nothing_is_moved(
    house: RegisteredRepository,
) -> None:
    path = Path((await house.add(branch="topic"))["path"])
    await house.remove("topic")
    path.mkdir(parents=True)
    assert str(path) in (await house.restore("topic", 409))["message"]
    path.rmdir()
    house.repo.git("worktree", "add", "-q", str(path.with_name("elsewhere")), "topic")
    assert "checked out" in (await house.restore("topic", 409))["message"]
    house.repo.git("worktree", "remove", str(path.with_name("elsewhere")))
    await house.restore("topic")
    await house.restore("topic", 404)


async def test_of_two_removed_under_one_name_the_id_says_which(house: RegisteredRepository) -> None:
    await house.add(branch="one", name="spot")
    first = await house.remove("spot")
    await house.add(branch="two", name="spot")
    await house.remove("spot")
    assert (await house.restore("spot", id=first["id"]))["branch"] == "one"


async def test_the_trash_is_emptied_after_seven_days_and_not_before(
    house: RegisteredRepository, server: Server
) -> None:
    await house.add(branch="old")
    await house.add(branch="fresh")
    old = (await house.remove("old"))["id"]
    fresh = (await house.remove("fresh"))["id"]
    record = server.home / "trash" / old / "record.json"
    told = json.loads(record.read_text())
    record.write_text(json.dumps(told | {"removed_at": told["removed_at"] - 7 * 24 * 3600 * 1000}))
    await server.restart()
    async with asyncio.timeout(30):
        while record.parent.exists():
            await asyncio.sleep(0.02)
    assert [each["id"] for each in (await house.get())["trash"]] == [fresh]
    async with asyncio.timeout(30):
        while old in house.repo.git("for-each-ref"):
            await asyncio.sleep(0.02)
    assert fresh in house.repo.git("for-each-ref")


async def test_cleanup_runs_before_removal_and_its_failure_keeps_the_worktree(
    house: RegisteredRepository, tmp_path: Path
) -> None:
    path = Path((await house.add(branch="topic"))["path"])
    await house.set(cleanup=f"pwd > {tmp_path}/seen; exit 1")
    refused = await house.remove("topic", 409)
    assert "the cleanup command ended with code 1" in refused["message"]
    assert (tmp_path / "seen").read_text() == f"{path}\n"
    assert path.is_dir()
    await house.remove("topic", force=True)
    assert not path.exists()


async def test_a_worktree_somebody_works_in_is_not_removed(
    house: RegisteredRepository, server: Server
) -> None:
    made = await house.add(branch="topic")
    session = await server.new_session(repoId=house.id, worktreeId="topic", locationPath=None)
    terminal = await server.new_terminal(session["id"])
    refused = await house.remove("topic", 409, force=True)
    assert "end it first" in refused["message"]
    assert Path(made["path"]).is_dir()
    await server.call("DELETE", f"/api/sessions/{session['id']}/workers/{terminal['id']}")
    await house.remove("topic")


async def test_a_worktree_is_not_removed_under_a_worker_of_a_session_that_lives_elsewhere(
    house: RegisteredRepository, server: Server
) -> None:
    path = Path((await house.add(branch="topic"))["path"])
    (path / "inner").mkdir()
    session = await server.new_session(title="the fleet")
    worker = await server.new_terminal(session["id"], role="tester", workspace=str(path / "inner"))
    refused = await house.remove("topic", 409, force=True)
    assert refused["message"] == f"tester of the session the fleet works in {path}; end it first"
    assert (path / "inner").is_dir()
    await server.call("DELETE", f"/api/sessions/{session['id']}/workers/{worker['id']}")
    await server.new_terminal(session["id"], role="tester", workspace=str(path.parent))
    await house.remove("topic", force=True)


async def test_a_worktree_in_which_somebody_began_during_its_cleanup_is_not_removed(
    house: RegisteredRepository, server: Server
) -> None:
    path = Path((await house.add(branch="topic"))["path"])
    await house.set(cleanup="touch cleaning; until [ -e go ]; do sleep 0.02; done")
    removing = asyncio.ensure_future(house.remove("topic", 409))
    async with asyncio.timeout(30):
        while not (path / "cleaning").exists():
            await asyncio.sleep(0.02)
    session = await server.new_session(repoId=house.id, worktreeId="topic", locationPath=None)
    await server.new_terminal(session["id"], role="latecomer")
    (path / "go").touch()
    assert "latecomer" in (await removing)["message"]
    assert path.is_dir()


async def test_the_repositorys_own_directory_is_never_removed(house: RegisteredRepository) -> None:
    await house.remove("main", 409, force=True)
    assert (house.repo.path / "readme.txt").exists()


@pytest.mark.parametrize("victim", ["outside", "repo", "plain"])
async def test_a_worktree_that_claims_another_directory_is_not_removed(
    house: RegisteredRepository, tmp_path: Path, workspace: Path, victim: str
) -> None:
    """`.git/worktrees/topic/gitdir` is a file an agent may write: it could name the home directory."""
    await house.add(branch="topic")
    target = {"outside": tmp_path / "precious", "repo": workspace, "plain": workspace / "plain"}[victim]
    target.mkdir(exist_ok=True)
    (target / "file").write_text("precious")
    (house.repo.git_dir / "worktrees" / "topic" / "gitdir").write_text(f"{target}/.git\n")
    answer = await house.server.http.delete(f"{house.url}/topic", params={"force": "true"})
    assert answer.status_code in (403, 409)
    assert (target / "file").read_text() == "precious"


async def test_a_trash_on_another_disk_gets_a_whole_copy(workspace: Path) -> None:
    shm = Path("/dev/shm")
    assert os.stat(shm).st_dev != os.stat(workspace).st_dev
    home = shm / f"bullpen-test-{os.getpid()}"
    server = Server(home, workspace)
    await server.start()
    try:
        house = await RegisteredRepository.register(server, Repo(workspace / "repo"))
        path = Path((await house.add(branch="topic"))["path"])
        (path / "untracked").write_text("x")
        (path / "link").symlink_to("nowhere")
        os.mkfifo(path / "fifo")
        before = directory_contents(path)
        await house.remove("topic", force=True)
        assert not path.exists()
        await house.restore("topic")
        assert directory_contents(path) == before
    finally:
        await server.close()
        import shutil

        shutil.rmtree(home)
        home.with_suffix(".out").unlink()


# What a person decides about a repository


async def test_settings_of_a_repository_are_kept_and_values_of_its_environment_are_not_told(
    house: RegisteredRepository, server: Server
) -> None:
    told = await house.set(env={"KEY": "sekret", "OTHER": "x"}, setup="make", agentId="demo", name="site")
    told = await house.set(env={"OTHER": None})
    assert (told["env"], told["setup"], told["agentId"], told["name"]) == (["KEY"], "make", "demo", "site")
    await server.restart()
    assert (await server.call("GET", f"/api/repositories/{house.id}")) == told
    for wrong in ({"env": {"BULLPEN_TOKEN": "x"}}, {"env": {"A=B": "x"}}, {"setup": "a\0b"}):
        await server.call("PATCH", f"/api/repositories/{house.id}", 400, json=wrong)
    await server.call("PATCH", f"/api/repositories/{house.id}", 404, json={"agentId": "nobody"})


async def test_changes_of_a_repository_that_come_at_once_all_stand(
    house: RegisteredRepository, server: Server
) -> None:
    changes: list[dict[str, Any]] = [{"env": {f"KEY_{n}": "x"}} for n in range(8)]
    changes += [{"queue": {"delay_seconds": 5}}, {"queue": {"max_size": 3}}, {"setup": "make"}]
    await asyncio.gather(*(house.set(**change) for change in changes))
    for _ in range(2):
        told = await server.call("GET", f"/api/repositories/{house.id}")
        assert (told["env"], told["setup"]) == ([f"KEY_{n}" for n in range(8)], "make")
        assert (told["queue"]["delay_seconds"], told["queue"]["max_size"]) == (5, 3)
        await server.restart()


async def test_the_default_agent_and_environment_of_a_repository_are_those_of_its_sessions(
    house: RegisteredRepository, server: Server
) -> None:
    await house.set(agentId="demo", env={"COLOUR": "green"})
    session = await server.new_session(repoId=house.id, locationPath=None)
    worker = await server.call("POST", f"/api/sessions/{session['id']}/workers", 201, json={"type": "agent"})
    assert worker["agentId"] == "demo"
    terminal = await server.new_terminal(session["id"])
    environment = Path(f"/proc/{terminal['pid']}/environ").read_bytes().split(b"\0")
    assert b"COLOUR=green" in environment
