"""`bullpen worktree`, `new -w`, `run -w` and `repo set`."""

import json
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support.commands import Bullpen, CommandResult
from support.repositories import Repo
from support.server import Server
from support.session_client import define_scripted


def runner(bullpen: Bullpen) -> Callable[..., Awaitable[CommandResult]]:
    async def run(*arguments: str, expect: int = 0) -> CommandResult:
        done = await bullpen(*arguments)
        assert done.code == expect, done
        return done

    return run


@pytest.fixture
def repo(workspace: Path) -> Repo:
    return Repo(workspace / "site")


async def test_a_worktree_is_added_listed_removed_and_restored(
    bullpen: Bullpen, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runner(bullpen)
    await run("repo", "add", str(repo.path))
    await run("repo", "set", "site", "--setup", "echo $COLOUR > output", "--env", "COLOUR=green")
    worktree = Path((await run("worktree", "add", "fix", str(repo.path), "-q")).out.strip())
    assert (worktree / "output").read_text() == "green\n"
    listed = (await run("worktree", "ls", "site")).out
    assert "fix" in listed and "changed" in listed
    refused = await run("worktree", "rm", "fix", "site", expect=1)
    assert "?? output" in refused.err and "1 uncommitted change;" in refused.err
    await run("worktree", "rm", "fix", "site", "--force")
    assert not worktree.exists()
    assert "restore it with: bullpen worktree restore fix site\n" in (await run("worktree", "ls", "site")).out
    await run("worktree", "restore", "fix", "site")
    assert (worktree / "output").read_text() == "green\n"
    unknown = await run("worktree", "ls", "sight", expect=1)
    assert "no repository called sight" in unknown.err
    for place in (worktree, repo.path):  # directories, relative to that of the command
        monkeypatch.chdir(place)
        assert (await run("worktree", "ls", ".", "-q")).out == "main\nfix\n"


async def test_the_error_for_an_unregistered_repository_names_the_command_that_registers_it(
    bullpen: Bullpen, workspace: Path
) -> None:
    run = runner(bullpen)
    unregistered = Repo(workspace / "my site").path
    refused = await run("new", "-w", "-d", str(unregistered), expect=1)
    _, _, command = refused.err.strip().partition("add it with: bullpen ")
    await run(*shlex.split(command))
    await run("new", "-w", "-d", str(unregistered))


async def test_new_and_run_create_a_worktree_for_the_session(bullpen: Bullpen, repo: Repo) -> None:
    run = runner(bullpen)
    site = str(repo.path)
    unknown = await run("new", site, "-w", "-d", expect=1)
    assert "bullpen repo add" in unknown.err
    await run("repo", "add", site)
    done = await run("new", site, "-w", "--branch", "topic", "--base", "main", "--role", "shell", "--json")
    session = json.loads(done.out)
    assert (session["worktreeId"], session["workers"][0]["role"]) == ("topic", "shell")
    done = await run("new", site, "-w", "--name", "A review", "--agent", "demo", "--role", "critic", "--json")
    session = json.loads(done.out)
    assert (session["worktreeId"], session["workers"][0]["role"]) == ("a-review", "critic")
    done = await run("run", "say hello", "-w", "-C", site, "--agent", "demo", "--json")
    assert json.loads(done.out)["sessionId"]
    listed = json.loads((await run("worktree", "ls", "site", "--json")).out)
    assert [each["name"] for each in listed["worktrees"]] == ["main", "a-review", "say-hello", "topic"]


async def test_a_session_in_a_directory_of_a_repository_belongs_to_the_repository(
    bullpen: Bullpen, repo: Repo, workspace: Path
) -> None:
    run = runner(bullpen)
    (repo.path / "src").mkdir()
    inner, elsewhere = Repo(repo.path / "vendor" / "inner"), workspace / "elsewhere"
    repo.git("worktree", "add", "-q", str(elsewhere))
    (elsewhere / "src").mkdir()
    await run("repo", "add", str(repo.path))
    repo_id = json.loads((await run("repo", "ls", "--json")).out)["repositories"][0]["id"]

    async def repository_and_worktree_of(directory: Path) -> tuple[str | None, str | None]:
        session = json.loads((await run("new", str(directory), "-d", "--json")).out)
        assert session["locationPath"] == str(directory)
        return session["repoId"], session["worktreeId"]

    assert await repository_and_worktree_of(repo.path) == (repo_id, None)
    assert await repository_and_worktree_of(repo.path / "src") == (repo_id, None)
    assert await repository_and_worktree_of(elsewhere) == (repo_id, "elsewhere")
    assert await repository_and_worktree_of(elsewhere / "src") == (repo_id, "elsewhere")
    assert await repository_and_worktree_of(inner.path) == (None, None)
    assert await repository_and_worktree_of(workspace) == (None, None)
    assert len((await run("ls", "--repo", "site", "-q")).out.split()) == 4


async def test_a_linked_worktree_outside_the_repository_belongs_to_it(
    bullpen: Bullpen, repo: Repo, workspace: Path
) -> None:
    run = runner(bullpen)
    repo.git("worktree", "add", "-q", str(workspace / "elsewhere"))
    await run("repo", "add", str(repo.path))
    done = await run("new", str(workspace / "elsewhere"), "-w", "--branch", "topic", "--json")
    assert json.loads(done.out)["worktreeId"] == "topic"


async def test_run_in_a_repository_uses_the_agent_of_the_repository(
    bullpen: Bullpen, repo: Repo, server: Server
) -> None:
    run = runner(bullpen)
    await define_scripted(server)
    await run("repo", "add", str(repo.path))
    await run("repo", "set", "site", "--agent", "scripted")
    for model in ((), ("--model", "large")):
        assert (await run("run", "[[chunk mine]]", "-C", str(repo.path), "--wait", *model)).out == "mine\n"
