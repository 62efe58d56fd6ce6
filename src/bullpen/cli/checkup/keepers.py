"""Check that a keeper runs, and that its protocol version is that of this program."""

import os
import re
import socket
from pathlib import Path

from ...keeper.frames import VERSION, BadFrame, FrameDecoder, Tag, encode
from .finding import Finding, fail, ok, warn

_FLOCK = re.compile(r"FLOCK\s+ADVISORY\s+WRITE\s+\d+\s+\w+:\w+:(\d+)")
_TIMEOUT_SECONDS = 5.0


def check_keeper(home: Path, *, running: bool) -> Finding:
    """Check the keepers of a data directory; `running` says whether its server runs."""
    names = running_keepers(home)
    if not names and running:
        advice = "restart the server; terminals and agents that ran have ended and can be restarted"
        return fail("keeper", "none is running, although the server runs", advice)
    if not names:
        return ok("keeper", "none; the server starts one")
    summary = f"{len(names)} running ({', '.join(names)})"
    # A keeper serves one connection at a time: only its server can talk to it.
    return ok("keeper", summary) if running else _check_versions(home, names, summary)


def running_keepers(home: Path) -> list[str]:
    """Return the names of the keepers that hold their lock, as /proc/locks lists it.

    Trying to take the lock could prevent a keeper from starting.
    """
    try:
        held = set(_FLOCK.findall(Path("/proc/locks").read_text()))
    except OSError:
        held = set()
    locks = sorted((home / "keeper").glob("*.lock"))
    return [lock.stem for lock in locks if _inode(lock) in held]


def _check_versions(home: Path, names: list[str], summary: str) -> Finding:
    """Ask each keeper for its protocol version and compare it with that of this version."""
    versions = {name: _query_version(home, name) for name in names}
    silent = [name for name, version in versions.items() if version is None]
    if silent:
        advice = f"see {home / 'keeper' / silent[0]}.log; its processes go on until you end them"
        return fail("keeper", f"{', '.join(silent)} runs but does not answer", advice)
    others = [f"{name} of version {version}" for name, version in versions.items() if version != VERSION]
    if others:
        advice = (
            "nothing to do: it keeps its processes until they end; the server starts one of its own version"
        )
        return warn("keeper", f"{summary}: {', '.join(others)}, ours is {VERSION}", advice)
    return ok("keeper", f"{summary}, version {VERSION}; no server is connected")


def _query_version(home: Path, name: str) -> int | None:
    """Return the version with which a keeper answers a HELLO frame; None if it does not answer."""
    directory = os.open(home / "keeper", os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT_SECONDS)
            connection.connect(f"/proc/self/fd/{directory}/{name}.sock")  # the full path may be too long
            connection.sendall(encode(Tag.HELLO, {"version": VERSION}))
            decoder = FrameDecoder()
            while data := connection.recv(65536):
                for tag, header, _ in decoder.feed(data):
                    if tag == Tag.HELLO:
                        return int(header["version"])
    except (OSError, BadFrame, KeyError, ValueError):
        return None
    finally:
        os.close(directory)
    return None


def _inode(path: Path) -> str | None:
    """Return the inode number of a lock file; None if the file is gone."""
    try:
        return str(path.lstat().st_ino)
    except FileNotFoundError:  # the keeper ended just now
        return None
