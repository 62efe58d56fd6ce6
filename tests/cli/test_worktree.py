"""`bullpen worktree`, `new -w`, `run -w` and `repo set`, as a person or a script uses them."""

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


async def test_the_life_of_a_worktree(bullpen: Bullpen, repo: Repo) -> None:
    run = runner(bullpen)
    await run("repo", "add", str(repo.path))
    await run("repo", "set", "site", "--setup", "echo $COLOUR > made", "--env", "COLOUR=green")
    made = Path((await run("worktree", "add", "fix", "--repo", "site", "-q")).out.strip())
    assert (made / "made").read_text() == "green\n"
    listed = (await run("worktree", "ls", "-r", "site")).out
    assert "fix" in listed and "changed" in listed
    refused = await run("worktree", "rm", "fix", "-r", "site", expect=1)
    assert "?? made" in refused.err and "1 uncommitted change;" in refused.err
    await run("worktree", "rm", "fix", "-r", "site", "--force")
    assert not made.exists()
    assert "restore it with: bullpen worktree restore fix" in (await run("worktree", "ls", "-r", "site")).out
    await run("worktree", "restore", "fix", "-r", "site")
    assert (made / "made").read_text() == "green\n"


async def test_a_repository_nobody_registered_is_registered_by_the_command_one_is_told(
    bullpen: Bullpen, workspace: Path
) -> None:
    run = runner(bullpen)
    lonely = Repo(workspace / "my site").path
    refused = await run("new", "-w", "-d", str(lonely), expect=1)
    _, _, command = refused.err.strip().partition("add it with: bullpen ")
    await run(*shlex.split(command))
    await run("new", "-w", "-d", str(lonely))


async def test_a_session_or_an_agent_in_a_worktree_of_its_own(bullpen: Bullpen, repo: Repo) -> None:
    run = runner(bullpen)
    site = str(repo.path)
    unknown = await run("new", site, "-w", "-d", expect=1)
    assert "bullpen repo add" in unknown.err
    await run("repo", "add", site)
    told = await run("new", site, "-w", "--branch", "topic", "--base", "main", "--role", "shell", "--json")
    session = json.loads(told.out)
    assert (session["worktreeId"], session["workers"][0]["role"]) == ("topic", "shell")
    told = await run("new", site, "-w", "--name", "A review", "--agent", "demo", "--role", "critic", "--json")
    session = json.loads(told.out)
    assert (session["worktreeId"], session["workers"][0]["role"]) == ("a-review", "critic")
    told = await run("run", "say hello", "-w", "-C", site, "--agent", "demo", "--json")
    assert json.loads(told.out)["sessionId"]
    listed = json.loads((await run("worktree", "ls", "-r", "site", "--json")).out)
    assert [each["name"] for each in listed["worktrees"]] == ["main", "a-review", "say-hello", "topic"]


async def test_a_session_in_a_directory_of_a_repository_is_one_of_the_repository(
    bullpen: Bullpen, repo: Repo, workspace: Path
) -> None:
    run = runner(bullpen)
    (repo.path / "src").mkdir()
    inner, elsewhere = Repo(repo.path / "vendor" / "inner"), workspace / "elsewhere"
    repo.git("worktree", "add", "-q", str(elsewhere))
    (elsewhere / "src").mkdir()
    await run("repo", "add", str(repo.path))
    repo_id = json.loads((await run("repo", "ls", "--json")).out)["repositories"][0]["id"]

    async def place_of(directory: Path) -> tuple[str | None, str | None]:
        session = json.loads((await run("new", str(directory), "-d", "--json")).out)
        assert session["locationPath"] == str(directory)
        return session["repoId"], session["worktreeId"]

    assert await place_of(repo.path) == (repo_id, None)
    assert await place_of(repo.path / "src") == (repo_id, None)
    assert await place_of(elsewhere) == (repo_id, "elsewhere")
    assert await place_of(elsewhere / "src") == (repo_id, "elsewhere")
    assert await place_of(inner.path) == (None, None)
    assert await place_of(workspace) == (None, None)
    assert len((await run("ls", "--repo", "site", "-q")).out.split()) == 4


async def test_a_linked_worktree_stands_for_its_repository_wherever_it_lies(
    bullpen: Bullpen, repo: Repo, workspace: Path
) -> None:
    run = runner(bullpen)
    repo.git("worktree", "add", "-q", str(workspace / "elsewhere"))
    await run("repo", "add", str(repo.path))
    told = await run("new", str(workspace / "elsewhere"), "-w", "--branch", "topic", "--json")
    assert json.loads(told.out)["worktreeId"] == "topic"


async def test_run_in_a_repository_takes_the_agent_of_the_repository(
    bullpen: Bullpen, repo: Repo, server: Server
) -> None:
    run = runner(bullpen)
    await define_scripted(server)
    await run("repo", "add", str(repo.path))
    await run("repo", "set", "site", "--agent", "scripted")
    for model in ((), ("--model", "large")):
        assert (await run("run", "[[chunk mine]]", "-C", str(repo.path), "--wait", *model)).out == "mine\n"
