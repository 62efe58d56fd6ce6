"""Git is called in one way: bounded, quiet, with nothing left behind and one sentence when it fails."""

import asyncio
import os
import resource
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from bullpen.domain.errors import Conflict, RemoteFault, Unavailable
from bullpen.git.command import start_git
from bullpen.git.places import GitDirectories
from bullpen.git.process import run_process
from bullpen.git.run import GitFailed, run_git
from support.repositories import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


async def test_what_git_says_comes_back_as_bytes(repo: Repo) -> None:
    repo.write("odd \n name", "x")
    said = await run_git(repo.git_directories, "status", "--porcelain", "-z")
    assert said.output == b"?? odd \n name\0"


async def test_a_linked_worktree_is_looked_at_with_its_own_index(repo: Repo) -> None:
    place = repo.add_worktree("topic")
    (place.work_tree / "new").write_text("x")
    assert (await run_git(place, "status", "--porcelain")).output == b"?? new\n"
    assert (await run_git(place, "symbolic-ref", "HEAD")).output == b"refs/heads/topic\n"
    assert (await run_git(repo.git_directories, "status", "--porcelain")).output == b""


async def test_git_gets_an_environment_of_our_own_and_names_from_outside_are_no_options(
    repo: Repo, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\ncase "$*" in *--list*) exit;; esac\nfor each in "$@"; do echo "$each"; done; env; umask\n'
    )
    program.chmod(0o755)
    before = os.environ["PATH"]
    os.environ |= {"PATH": f"{program.parent}:{before}", "GIT_DIR": "/elsewhere", "GIT_EXTERNAL_DIFF": "evil"}
    try:
        said = await run_git(repo.git_directories, "diff", "--numstat", refs=["--output=x"], paths=["-a"])
    finally:
        os.environ["PATH"] = before
        del os.environ["GIT_DIR"], os.environ["GIT_EXTERNAL_DIFF"]
    lines = said.output.decode().splitlines()
    where = [f"--git-dir={repo.git_dir}", f"--work-tree={repo.path}"]
    off = ["--no-ext-diff", "--no-textconv", "--ignore-submodules=all"]
    rest = ["--numstat", "--end-of-options", "--output=x", "--", "-a"]
    assert lines[:13] == ["--no-optional-locks", "--no-pager", *where, "diff", *off, *rest]
    variables = dict(line.split("=", 1) for line in lines if line.startswith("GIT_"))
    assert variables.pop("GIT_COMMON_DIR") != str(repo.git_dir)
    assert variables == {
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PROGRESS_DELAY": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    assert lines[-1] == "0027"


async def test_no_transport_is_allowed_even_where_git_reads_a_configuration_that_allows_it(
    repo: Repo, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    repo.git("config", "protocol.ext.allow", "always")
    url = f"ext::sh -c touch% {canary}"
    repo.git("ls-remote", url, check=False)
    assert canary.exists()
    canary.unlink()
    ended = await start_git("ls-remote", [url], {"GIT_DIR": str(repo.git_dir)})
    assert "transport 'ext' not allowed" in ended.errors
    assert not canary.exists()


async def test_a_failure_is_one_sentence_of_git(repo: Repo) -> None:
    with pytest.raises(GitFailed, match="git rev-parse failed: Needed a single revision") as failed:
        await run_git(repo.git_directories, "rev-parse", "--verify", refs=["nothing"])
    assert failed.value.exit_code == 128
    assert (
        await run_git(repo.git_directories, "rev-parse", "--verify", refs=["x"], accept=(0, 128))
    ).code == 128


async def test_a_repository_that_is_gone_is_a_fault_not_the_one_around_it(repo: Repo) -> None:
    inner = repo.path / "inner"
    inner.mkdir()
    with pytest.raises(RemoteFault, match="not a git repository"):
        await run_git(GitDirectories.main(inner / ".git", inner), "status")


async def test_a_lock_that_is_left_over_is_a_conflict_that_names_it(repo: Repo) -> None:
    (repo.git_dir / "refs" / "heads" / "topic.lock").touch()
    with pytest.raises(Conflict, match=r"topic\.lock was left by another git"):
        await run_git(repo.git_directories, "update-ref", refs=["refs/heads/topic", "main"])


async def test_more_output_than_wanted_is_refused_or_cut(repo: Repo) -> None:
    repo.write("big", "x" * 100_000)
    repo.commit("big")
    with pytest.raises(RemoteFault, match="more than 1000 bytes"):
        await run_git(repo.git_directories, "cat-file", "blob", refs=["HEAD:big"], limit=1000)
    said = await run_git(repo.git_directories, "cat-file", "blob", refs=["HEAD:big"], limit=1000, cut=True)
    assert said.cut
    assert said.output == b"x" * 1000


@pytest.mark.parametrize("step", ["read the configuration", "start git"])
async def test_a_missing_file_descriptor_is_named_and_is_no_fault_of_git(repo: Repo, step: str) -> None:
    await run_git(repo.git_directories, "status")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        with pytest.raises(Unavailable, match="too many open files"):
            if step == "start git":
                await start_git("version", [], {})
            else:
                await run_git(repo.git_directories, "status")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_a_git_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    script = 'sleep 600 & echo $! > "$0"; echo $$ >> "$0"; wait'
    noted = tmp_path / "pids"
    with pytest.raises(TimeoutError):
        await run_process(["sh", "-c", script, str(noted)], env=_env(), cwd="/", timeout=6, limit=10)
    pids = [int(line) for line in noted.read_text().split()]
    assert len(pids) == 2
    await _gone(pids)


async def test_cancelling_a_call_ends_git_with_all_it_started(tmp_path: Path) -> None:
    noted = tmp_path / "pids"
    script = 'sleep 600 & echo $! > "$0.new"; echo $$ >> "$0.new"; mv "$0.new" "$0"; wait'
    call = asyncio.ensure_future(
        run_process(["sh", "-c", script, str(noted)], env=_env(), cwd="/", timeout=600, limit=10)
    )
    async with asyncio.timeout(30):
        while not noted.exists():
            await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await _gone([int(line) for line in noted.read_text().split()])


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_call_cancelled_at_any_turn_of_its_start_leaves_nothing_behind(
    run: Callable[[Coroutine[Any, Any, None]], None], tmp_path: Path
) -> None:
    for turns in range(10):
        run(_cancelled_after(turns, tmp_path / str(turns)))


async def _cancelled_after(turns: int, noted: Path) -> None:
    """Cancels a call when the loop has gone round so often, and its program has started another."""
    argv, marker = ["sh", "-c", 'sleep 600 & touch "$0"; wait', str(noted)], {"CALLED": str(noted)}
    call = asyncio.ensure_future(run_process(argv, env=_env() | marker, cwd="/", timeout=600, limit=10))
    for _ in range(turns):
        await asyncio.sleep(0)
    deadline = time.monotonic() + 30
    while _called(noted) and not noted.exists():  # without a turn of the loop
        assert time.monotonic() < deadline
        time.sleep(0.01)
    call.cancel()
    async with asyncio.timeout(30):
        with pytest.raises(asyncio.CancelledError):
            await call
        while _called(noted):
            await asyncio.sleep(0.01)


def _called(noted: Path) -> list[int]:
    """The processes of a call that run, known by their environment."""
    return [pid for pid in psutil.pids() if _runs(pid) and _environment(pid).get("CALLED") == str(noted)]


def _environment(pid: int) -> dict[str, str]:
    try:
        environment: dict[str, str] = psutil.Process(pid).environ()
        return environment
    except psutil.Error:
        return {}


async def test_input_goes_in_and_progress_comes_out(tmp_path: Path) -> None:
    seen: list[str] = []
    script = 'cat; printf "a 10%%\\ra 100%%\\nrest" >&2'
    ended = await run_process(
        ["sh", "-c", script], env=_env(), cwd="/", timeout=30, limit=10, stdin=b"in", on_line=seen.append
    )
    assert (ended.output, ended.code, seen) == (b"in", 0, ["a 10%", "a 100%", "rest"])
    assert ended.errors == "a 10%\na 100%\nrest"


def test_a_program_that_reads_nothing_and_ends_at_once_is_no_error_on_the_servers_own_loop() -> None:
    async def often() -> list[bytes]:
        argv = ["sh", "-c", "exec <&-; echo done"]
        calls = (
            run_process(argv, env=_env(), cwd="/", timeout=30, limit=99, stdin=b"x" * 200_000)
            for _ in range(20)
        )
        return [ended.output for ended in await asyncio.gather(*calls)]

    assert uvloop.run(often()) == [b"done\n"] * 20


def _env() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


async def _gone(pids: list[int]) -> None:
    async with asyncio.timeout(30):
        while any(_runs(pid) for pid in pids):
            await asyncio.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
