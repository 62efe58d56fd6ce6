"""Fixtures of tests that use the command line as a person or a script would."""

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
    """Runs commands against the running server."""
    return Bullpen(server.environment())


@pytest.fixture
def lonely_bullpen(tmp_path: Path) -> Bullpen:
    """Runs commands where no server is."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("BULLPEN_", "XDG_"))}
    return Bullpen(env | {"BULLPEN_HOME": str(tmp_path / "nobody"), "HOME": str(tmp_path)})


@pytest.fixture
async def tmux(server: Server, tmp_path: Path) -> AsyncIterator[Tmux]:
    """A person at a terminal with `bullpen` in the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = server.environment() | {"PATH": path, "TERM": "xterm-256color"}
    async with Tmux.open(tmp_path / "tmux", env) as tmux:
        yield tmux
