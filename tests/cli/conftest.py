"""Fixtures for tests of the command line, used by scripts and by a user in a terminal."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.commands import Bullpen
from support.server import Server
from support.tmux import Tmux


@pytest.fixture
def bullpen(server: Server) -> Bullpen:
    """Return a runner of commands that use the running server."""
    return Bullpen(server.environment())


@pytest.fixture
def bullpen_without_server(tmp_path: Path) -> Bullpen:
    """Return a runner of commands for a data directory on which no server runs."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("BULLPEN_", "XDG_"))}
    return Bullpen(env | {"BULLPEN_HOME": str(tmp_path / "data"), "HOME": str(tmp_path)})


@pytest.fixture
async def tmux(server: Server) -> AsyncIterator[Tmux]:
    """Open a terminal window that has `bullpen` in its path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = server.environment() | {"PATH": path, "TERM": "xterm-256color"}
    async with Tmux.open(server.workspace.parent / "tmux", env) as tmux:
        yield tmux
