"""At the limit of running agents, the command line offers to end the session that is idle longest."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient, define_scripted
from support.tmux import Tmux


@pytest.fixture
async def server(tmp_path: Path, workspace: Path) -> AsyncIterator[Server]:
    """Return a server with two idle agents, which is its limit."""
    this = Server(tmp_path / "home", workspace, {"AGENT_MAX_SESSIONS": "2"})
    await this.start()
    await define_scripted(this)
    for title in ("older", "newer"):
        session = await SessionClient.begin(this, title=title)
        await session.run_turn("[[chunk x]]")
    yield this
    await this.close()


async def titles(server: Server) -> list[str]:
    """Return the titles of the active sessions, newest first."""
    return [each["title"] for each in (await server.call("GET", "/api/sessions?status=active"))["sessions"]]


async def test_run_offers_to_end_the_session_that_is_idle_for_the_longest_time(
    server: Server, tmp_path: Path
) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = server.environment() | {"PATH": path, "TERM": "xterm-256color"}
    async with Tmux.open(tmp_path / "tmux", env, cols=200) as window:
        await window.enter(f"cd {server.workspace}; clear")
        command = "bullpen run '[[chunk mine]]' --agent scripted --wait --name third"
        await window.enter(command)
        shown = await window.until("End older, which has been idle for ")
        assert "raise the setting max_sessions (AGENT_MAX_SESSIONS)." in shown
        await window.enter("n")
        await window.until("older has been idle longest, end it with: bullpen stop ", "-J")
        assert await titles(server) == ["newer", "older"]
        await window.enter("clear")
        await window.until(lambda screen: "[y/N]" not in screen)
        await window.enter(command)
        await window.until("[y/N]")
        await window.enter("y")
        await window.until("\nmine\n")
    assert await titles(server) == ["third", "newer"]


async def test_without_a_terminal_the_error_names_the_command_that_ends_the_session(server: Server) -> None:
    bullpen = Bullpen(server.environment())
    place = str(server.workspace)
    await bullpen("new", "-d", place, "--name", "empty")
    for arguments in (
        ("run", "x", "--agent", "scripted", "-C", place),
        ("new", "-d", "--agent", "scripted", place),
        ("send", "empty", "x"),
        ("worker", "add", "empty", "--type", "agent", "--agent", "scripted"),
    ):
        refused = await bullpen(*arguments)
        assert refused.code == 1, refused
        sentence, command = refused.err.strip().split("; older has been idle longest, end it with: bullpen ")
        assert sentence.endswith("raise the setting max_sessions (AGENT_MAX_SESSIONS)")
    assert await titles(server) == ["empty", "newer", "older"]
    assert (await bullpen(*command.split())).code == 0
    assert (await bullpen("send", "empty", "[[chunk x]]")).code == 0


async def test_no_session_is_offered_while_every_agent_works(server: Server) -> None:
    bullpen = Bullpen(server.environment())
    for title in ("older", "newer"):
        await bullpen("send", title, "[[wait_cancel]]")
    refused = await bullpen("run", "x", "--agent", "scripted", "-C", str(server.workspace))
    assert (refused.code, "the limit" in refused.err, "idle" in refused.err) == (1, True, False)
