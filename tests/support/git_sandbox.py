"""Confine the calls of git of the test process as a server does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bullpen import config
from bullpen.git.command import CONFINEMENT
from bullpen.sandbox.git_calls import GitSandbox
from bullpen.sandbox.machine import machine_paths


@contextmanager
def confined_git(home: Path, *roots: Path, data: Path | None = None) -> Iterator[None]:
    """Run git in the sandbox of a server for this home, with these workspace roots, for the block."""
    settings = config.load({"home": str(data or home / "data")}, {})
    CONFINEMENT.wrap = GitSandbox(
        settings, lambda env: machine_paths(settings, map(str, roots), env, [home])
    ).wrap
    try:
        yield
    finally:
        CONFINEMENT.wrap = None
