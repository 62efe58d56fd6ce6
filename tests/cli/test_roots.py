"""`bullpen roots`, and the question that `new` and `run` ask in a directory that is not allowed yet."""

import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.commands import Bullpen
from support.server import Server
from support.tmux import PROMPT, Tmux


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """Return a server without a setting for its roots, and a project outside the home directory."""
    (tmp_path / "user").mkdir()
    (tmp_path / "srv/app").mkdir(parents=True)
    this = Server(tmp_path / "home", tmp_path / "user", {"AGENT_WORKSPACE_ROOT": ""})
    await this.start()
    yield this
    await this.close()


@pytest.fixture
async def window(server: Server, tmp_path: Path) -> AsyncIterator[Tmux]:
    """Open a terminal window in the project."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = server.environment() | {"PATH": path, "TERM": "xterm-256color"}
    async with Tmux.open(tmp_path / "tmux", env, cols=200) as tmux:
        await tmux.enter(f"cd {tmp_path}/srv/app; clear")
        await tmux.until(PROMPT)
        yield tmux


async def test_new_asks_once_whether_sessions_are_allowed_and_starts_the_session(
    window: Tmux, server: Server, tmp_path: Path
) -> None:
    await window.enter("bullpen new --name first")
    await window.until(f"Allow sessions in {tmp_path}/srv/app? [Y/n]")
    await window.enter("")
    await window.until(lambda screen: "Allow" not in screen and "srv/app" in screen)
    await window.enter("echo I am in $PWD")
    await window.until(f"I am in {tmp_path}/srv/app")
    await window.type("C-]")
    await window.until(PROMPT)
    await window.enter("clear; bullpen new -d --name second")
    assert "Allow" not in await window.until("started second")


async def test_after_no_the_session_is_refused_with_advice(
    window: Tmux, server: Server, tmp_path: Path
) -> None:
    await window.enter("bullpen run hello --agent demo")
    await window.until("[Y/n]")
    await window.enter("n")
    await window.until("bullpen roots add")
    assert (await server.call("GET", "/api/sessions"))["total"] == 0


async def test_import_asks_once_to_allow_the_directories_of_its_file(
    window: Tmux, server: Server, tmp_path: Path
) -> None:
    saved = {"id": "a", "worktreePath": f"{tmp_path}/srv/app", "createdAt": "2025-01-01T00:00:00.000Z"}
    (tmp_path / "sessions.json").write_text(json.dumps([saved, saved | {"id": "b"}]))
    await window.enter(f"bullpen import {tmp_path}/sessions.json")
    await window.until(f"Allow sessions in {tmp_path}/srv/app? [Y/n]")
    await window.enter("")
    screen = await window.until(lambda screen: screen.count("imported app") == 2)
    assert "skipped" not in screen
    assert (await server.call("GET", "/api/sessions"))["total"] == 2


async def test_without_a_terminal_the_error_names_the_exact_command(server: Server, tmp_path: Path) -> None:
    bullpen = Bullpen(server.environment())
    refused = await bullpen("new", "-d", str(tmp_path / "srv/app"))
    assert refused.code == 1
    command = f"bullpen roots add {tmp_path}/srv/app"
    assert f"`{command}`" in refused.err
    await bullpen(*command.split()[1:])
    assert (await bullpen("new", "-d", str(tmp_path / "srv/app"))).code == 0
    listed = (await bullpen("roots", "ls")).out
    assert "~/bullpen" in listed
    assert "srv/app" in listed
    await bullpen("roots", "rm", str(tmp_path / "srv/app"))
    assert (await bullpen("new", "-d", str(tmp_path / "srv/app"))).code == 1


async def test_the_home_directory_needs_force(server: Server) -> None:
    bullpen = Bullpen(server.environment())
    refused = await bullpen("roots", "add", str(server.workspace))
    assert refused.code == 1
    assert "--force" in refused.err
    await bullpen("roots", "add", "--force", str(server.workspace))
    assert (await bullpen("new", "-d", str(server.workspace))).code == 0


async def test_new_in_the_home_directory_creates_a_directory_for_the_session(
    window: Tmux, server: Server
) -> None:
    await window.enter("cd; bullpen new -d --name mine")
    await window.until("started mine")
    [session] = (await server.call("GET", "/api/sessions"))["sessions"]
    assert Path(session["locationPath"]).parent == server.workspace / "bullpen"
