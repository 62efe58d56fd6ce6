"""`bullpen worktree`, `new -w`, `run -w` and `repo set`, as a person or a script uses them."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support.commands import Bullpen, Done
from support.repositories import Repo


def runner(bullpen: Bullpen) -> Callable[..., Awaitable[Done]]:
    async def run(*arguments: str, expect: int = 0) -> Done:
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
    assert "back with: bullpen worktree restore fix" in (await run("worktree", "ls", "-r", "site")).out
    await run("worktree", "restore", "fix", "-r", "site")
    assert (made / "made").read_text() == "green\n"


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
