"""Calls of git: limits of output and time, a fixed environment, no process left, and one error message."""

import asyncio
import os
import resource
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from bullpen.domain.errors import Conflict, RemoteFault, Unavailable
from bullpen.git.command import start_git
from bullpen.git.git_directories import GitDirectories
from bullpen.git.run import GitFailed, run_git
from bullpen.processes import run_process
from support.repositories import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


async def test_the_output_of_git_is_returned_as_bytes(repo: Repo) -> None:
    repo.write("odd \n name", "x")
    result = await run_git(repo.git_directories, "status", "--porcelain", "-z")
    assert result.output == b"?? odd \n name\0"


async def test_a_linked_worktree_is_read_with_its_own_index(repo: Repo) -> None:
    place = repo.add_worktree("topic")
    (place.work_tree / "new").write_text("x")
    assert (await run_git(place, "status", "--porcelain")).output == b"?? new\n"
    assert (await run_git(place, "symbolic-ref", "HEAD")).output == b"refs/heads/topic\n"
    assert (await run_git(repo.git_directories, "status", "--porcelain")).output == b""


async def test_git_gets_a_fixed_environment_and_names_from_requests_are_not_options(
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
        result = await run_git(repo.git_directories, "diff", "--numstat", refs=["--output=x"], paths=["-a"])
    finally:
        os.environ["PATH"] = before
        del os.environ["GIT_DIR"], os.environ["GIT_EXTERNAL_DIFF"]
    lines = result.output.decode().splitlines()
    location = [f"--git-dir={repo.git_dir}", f"--work-tree={repo.path}"]
    safe = ["--no-ext-diff", "--no-textconv", "--ignore-submodules=all"]
    arguments = ["--numstat", "--end-of-options", "--output=x", "--", "-a"]
    assert lines[:13] == ["--no-optional-locks", "--no-pager", *location, "diff", *safe, *arguments]
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


async def test_no_transport_is_allowed_although_a_configuration_allows_it(repo: Repo, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    repo.git("config", "protocol.ext.allow", "always")
    url = f"ext::sh -c touch% {canary}"
    repo.git("ls-remote", url, check=False)
    assert canary.exists()
    canary.unlink()
    ended = await start_git("ls-remote", [url], {"GIT_DIR": str(repo.git_dir)}, None)
    assert "transport 'ext' not allowed" in ended.errors
    assert not canary.exists()


async def test_a_failure_is_reported_in_one_sentence_of_git(repo: Repo) -> None:
    with pytest.raises(GitFailed, match="git rev-parse failed: Needed a single revision") as failed:
        await run_git(repo.git_directories, "rev-parse", "--verify", refs=["nothing"])
    assert failed.value.exit_code == 128
    assert (
        await run_git(repo.git_directories, "rev-parse", "--verify", refs=["x"], accept=(0, 128))
    ).code == 128


async def test_a_missing_repository_is_reported_and_the_one_around_it_is_not_used(repo: Repo) -> None:
    inner = repo.path / "inner"
    inner.mkdir()
    with pytest.raises(RemoteFault, match="not a git repository"):
        await run_git(GitDirectories.main(inner / ".git", inner), "status")


async def test_a_stale_lock_is_a_conflict_that_names_it(repo: Repo) -> None:
    (repo.git_dir / "refs" / "heads" / "topic.lock").touch()
    with pytest.raises(Conflict, match=r"topic\.lock was left by another git"):
        await run_git(repo.git_directories, "update-ref", refs=["refs/heads/topic", "main"])


async def test_output_beyond_the_limit_is_refused_or_cut(repo: Repo) -> None:
    repo.write("big", "x" * 100_000)
    repo.commit("big")
    with pytest.raises(RemoteFault, match="more than 1000 bytes"):
        await run_git(repo.git_directories, "cat-file", "blob", refs=["HEAD:big"], limit=1000)
    result = await run_git(repo.git_directories, "cat-file", "blob", refs=["HEAD:big"], limit=1000, cut=True)
    assert result.cut
    assert result.output == b"x" * 1000


@pytest.mark.parametrize("step", ["read the configuration", "start git"])
async def test_a_lack_of_file_descriptors_is_reported_as_unavailable(repo: Repo, step: str) -> None:
    await run_git(repo.git_directories, "status")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        with pytest.raises(Unavailable, match="too many open files"):
            if step == "start git":
                await start_git("version", [], {}, None)
            else:
                await run_git(repo.git_directories, "status")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_a_git_that_hangs_is_killed_with_its_processes(tmp_path: Path) -> None:
    script = 'sleep 600 & echo $! > "$0"; echo $$ >> "$0"; wait'
    pid_file = tmp_path / "pids"
    with pytest.raises(TimeoutError):
        await run_process(["sh", "-c", script, str(pid_file)], env=_env(), cwd="/", timeout=6, limit=10)
    pids = [int(line) for line in pid_file.read_text().split()]
    assert len(pids) == 2
    await _wait_until_ended(pids)


async def test_cancelling_a_call_ends_git_with_its_processes(tmp_path: Path) -> None:
    pid_file = tmp_path / "pids"
    script = 'sleep 600 & echo $! > "$0.new"; echo $$ >> "$0.new"; mv "$0.new" "$0"; wait'
    call = asyncio.ensure_future(
        run_process(["sh", "-c", script, str(pid_file)], env=_env(), cwd="/", timeout=600, limit=10)
    )
    async with asyncio.timeout(30):
        while not pid_file.exists():
            await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await _wait_until_ended([int(line) for line in pid_file.read_text().split()])


CALL_BESIDE_A_TERMINAL = """
import asyncio, fcntl, pty, termios
from bullpen.git.command import start_git

terminal = pty.openpty()[1]
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
open("/dev/tty").close()
print(asyncio.run(start_git("clone", [], {}, None, timeout=20)).errors)
"""


async def test_a_program_that_git_starts_for_a_clone_cannot_ask_on_the_terminal_of_the_server(
    tmp_path: Path,
) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nread -r password </dev/tty\n")
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", CALL_BESIDE_A_TERMINAL]
    called = await run_process(argv, env=env, cwd="/", timeout=60, limit=1000)
    assert b"/dev/tty" in called.output, called.errors
    assert b"No such device" in called.output


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_call_that_is_cancelled_at_any_moment_of_its_start_leaves_no_process(
    run: Callable[[Coroutine[Any, Any, None]], None], tmp_path: Path
) -> None:
    for iterations in range(10):
        run(_cancel_after(iterations, tmp_path / str(iterations)))


async def _cancel_after(iterations: int, pid_file: Path) -> None:
    """Cancel a call after `iterations` of the event loop, when its program has started another process."""
    argv, marker = ["sh", "-c", 'sleep 600 & touch "$0"; wait', str(pid_file)], {"CALLED": str(pid_file)}
    call = asyncio.ensure_future(run_process(argv, env=_env() | marker, cwd="/", timeout=600, limit=10))
    for _ in range(iterations):
        await asyncio.sleep(0)
    deadline = time.monotonic() + 30
    while _processes_of(pid_file) and not pid_file.exists():  # without an iteration of the event loop
        assert time.monotonic() < deadline
        time.sleep(0.01)
    call.cancel()
    async with asyncio.timeout(30):
        with pytest.raises(asyncio.CancelledError):
            await call
        while _processes_of(pid_file):
            await asyncio.sleep(0.01)


def _processes_of(pid_file: Path) -> list[int]:
    """Return the running processes of a call, which are found by their environment."""
    return [
        pid for pid in psutil.pids() if _is_running(pid) and _environment(pid).get("CALLED") == str(pid_file)
    ]


def _environment(pid: int) -> dict[str, str]:
    try:
        environment: dict[str, str] = psutil.Process(pid).environ()
        return environment
    except psutil.Error:
        return {}


async def test_a_process_receives_its_input_and_its_progress_lines_are_reported(tmp_path: Path) -> None:
    lines: list[str] = []
    script = 'cat; printf "a 10%%\\ra 100%%\\nrest" >&2'
    ended = await run_process(
        ["sh", "-c", script], env=_env(), cwd="/", timeout=30, limit=10, stdin=b"in", on_line=lines.append
    )
    assert (ended.output, ended.code, lines) == (b"in", 0, ["a 10%", "a 100%", "rest"])
    assert ended.errors == "a 10%\na 100%\nrest"


def test_a_program_that_reads_no_input_and_ends_is_no_error_with_uvloop() -> None:
    async def call_repeatedly() -> list[bytes]:
        argv = ["sh", "-c", "exec <&-; echo done"]
        calls = (
            run_process(argv, env=_env(), cwd="/", timeout=30, limit=99, stdin=b"x" * 200_000)
            for _ in range(20)
        )
        return [ended.output for ended in await asyncio.gather(*calls)]

    assert uvloop.run(call_repeatedly()) == [b"done\n"] * 20


def _env() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


async def _wait_until_ended(pids: list[int]) -> None:
    async with asyncio.timeout(30):
        while any(_is_running(pid) for pid in pids):
            await asyncio.sleep(0.01)


def _is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
