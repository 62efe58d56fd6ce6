"""Whether the data directory is ours and private, and its token too."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ...config import Config
from ..text import home_relative
from .finding import Finding, fail, ok

_OTHERS = 0o077


def check_directory(home: Path) -> Finding:
    """Modes and owners down to the folders of workers; deeper lies nothing anyone could reach past them."""
    shown = home_relative(str(home))
    place = next(path for path in (home, *home.parents) if path.exists())
    if not place.is_dir():
        above = home_relative(str(place))
        return fail("data", f"{above} is not a directory", "move it away, or set BULLPEN_HOME")
    if not home.exists() and not os.access(place, os.W_OK | os.X_OK):
        advice = f"set BULLPEN_HOME, or: sudo install -d -m 700 -o $USER {shown}"
        return fail("data", f"{shown} is not there, and we may not make it", advice)
    if not home.exists():
        return ok("data", f"{shown} is not there yet; the server makes it")
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
    except (FileNotFoundError, NotADirectoryError):
        if running:
            return fail("token", f"{shown} is gone", "restart the server; it makes another")
        return ok("token", "not there yet; the server makes one")
    if mode & _OTHERS:
        advice = f"chmod 600 {shown}, then give yourself another: bullpen token rotate"
        return fail("token", f"others may read {shown} (mode {mode:o})", advice)
    return ok("token", f"{shown}, mode {mode:o}")


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
