"""Whether the data directory is private, its token too, and whether its keeper lives."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from ...config import Config
from ..text import home_relative
from .finding import Finding, fail, ok

_OTHERS = 0o077
_FLOCK = re.compile(r"FLOCK\s+ADVISORY\s+WRITE\s+\d+\s+\w+:\w+:(\d+)")


def check_directory(home: Path) -> Finding:
    """Modes and owners down to the folders of workers; deeper lies nothing anyone could reach past them."""
    shown = home_relative(str(home))
    if not home.exists():
        return ok("data", f"{shown} is not there yet; the server makes it")
    if not home.is_dir():
        return fail("data", f"{shown} is not a directory", "move it away, or set BULLPEN_HOME")
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        return fail("data", f"{shown} is not ours to write", f"give it back: sudo chown -R $USER {shown}")
    open_ones = [path for path in _entries(home) if _is_open(path)]
    if open_ones:
        more = f" and {len(open_ones) - 1} more" if len(open_ones) > 1 else ""
        return fail(
            "data",
            f"others may read {home_relative(str(open_ones[0]))}{more}",
            f"close it: chmod -R go= {shown}",
        )
    return ok("data", f"{shown}, private")


def check_token(settings: Config, *, running: bool) -> Finding:
    path = settings.token_file
    shown = home_relative(str(path))
    if settings.token:
        place = home_relative(settings.sources["token"])
        return ok("token", f"from {'BULLPEN_TOKEN' if place == 'environment' else place}")
    try:
        mode = stat.S_IMODE(path.lstat().st_mode)
    except FileNotFoundError:
        if running:
            return fail("token", f"{shown} is gone", "restart the server; it makes another")
        return ok("token", "not there yet; the server makes one")
    if mode & _OTHERS:
        advice = f"chmod 600 {shown}, then give yourself another: bullpen token rotate"
        return fail("token", f"others may read {shown} (mode {mode:o})", advice)
    return ok("token", f"{shown}, mode {mode:o}")


def check_keeper(home: Path, *, running: bool) -> Finding:
    living = living_keepers(home)
    if living:
        return ok("keeper", f"{len(living)} alive ({', '.join(living)})")
    if running:
        advice = "restart the server; terminals and agents that ran have ended and can be restarted"
        return fail("keeper", "none is alive, though the server runs", advice)
    return ok("keeper", "none; the server starts one")


def living_keepers(home: Path) -> list[str]:
    """Those that hold their lock. The kernel's list tells; trying the lock could keep one from starting."""
    try:
        held = set(_FLOCK.findall(Path("/proc/locks").read_text()))
    except OSError:
        held = set()
    locks = sorted((home / "keeper").glob("*.lock"))
    return [lock.stem for lock in locks if _inode(lock) in held]


def _inode(path: Path) -> str | None:
    try:
        return str(path.lstat().st_ino)
    except FileNotFoundError:  # it ended just now
        return None


def _entries(home: Path) -> Iterator[Path]:
    yield home
    for pattern in ("*", "*/*"):
        yield from sorted(home.glob(pattern))


def _is_open(path: Path) -> bool:
    try:
        state = path.lstat()
    except FileNotFoundError:
        return False
    return not stat.S_ISLNK(state.st_mode) and bool(state.st_mode & _OTHERS)
