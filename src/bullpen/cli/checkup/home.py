"""Check that the data directory and its token belong to the user and are private."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ...config import Config
from ..text import home_relative
from .finding import Finding, fail, ok

_OTHERS_MODE_BITS = 0o077


def check_directory(home: Path) -> Finding:
    """Check that the user can write to the data directory, and that other users cannot read it.

    Modes are checked two levels deep: other users cannot get past private directories at these levels.
    """
    shown = home_relative(str(home))
    existing = next(path for path in (home, *home.parents) if path.exists())
    if not existing.is_dir():
        return fail(
            "data", f"{home_relative(str(existing))} is not a directory", "move it away, or set BULLPEN_HOME"
        )
    if not home.exists() and not os.access(existing, os.W_OK | os.X_OK):
        advice = f"set BULLPEN_HOME, or: sudo install -d -m 700 -o $USER {shown}"
        return fail("data", f"{shown} does not exist, and you may not create it", advice)
    if not home.exists():
        return ok("data", f"{shown} does not exist yet; the server creates it")
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        return fail("data", f"you may not write to {shown}", f"own it again: sudo chown -R $USER {shown}")
    readable = [path for path in _entries(home) if _is_readable_by_others(path)]
    if readable:
        more = f" and {len(readable) - 1} more" if len(readable) > 1 else ""
        return fail(
            "data",
            f"others may read {home_relative(str(readable[0]))}{more}",
            f"close it: chmod -R go= {shown}",
        )
    return ok("data", f"{shown}, private")


def check_token(settings: Config, *, running: bool) -> Finding:
    """Check that the owner's token exists if a server runs, and that only the user can read it."""
    path = settings.token_file
    shown = home_relative(str(path))
    if settings.token:
        source = home_relative(settings.sources["token"])
        return ok("token", f"from {'BULLPEN_TOKEN' if source == 'environment' else source}")
    try:
        mode = stat.S_IMODE(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        if running:
            return fail("token", f"{shown} is missing", "restart the server; it creates a new one")
        return ok("token", "does not exist yet; the server creates one")
    if mode & _OTHERS_MODE_BITS:
        advice = f"chmod 600 {shown}, then replace the token: bullpen token rotate"
        return fail("token", f"others may read {shown} (mode {mode:o})", advice)
    return ok("token", f"{shown}, mode {mode:o}")


def _entries(home: Path) -> Iterator[Path]:
    """Yield a directory and its entries down to the second level."""
    yield home
    for pattern in ("*", "*/*"):
        yield from sorted(home.glob(pattern))


def _is_readable_by_others(path: Path) -> bool:
    """Return whether the mode of a file allows access to other users."""
    try:
        state = path.lstat()
    except FileNotFoundError:
        return False
    return not stat.S_ISLNK(state.st_mode) and bool(state.st_mode & _OTHERS_MODE_BITS)
