"""Whether a keeper lives, and whether it is of our version."""

import os
import re
import socket
from pathlib import Path

from ...keeper.frames import VERSION, BadFrame, FrameDecoder, Tag, encode
from .finding import Finding, fail, ok, warn

_FLOCK = re.compile(r"FLOCK\s+ADVISORY\s+WRITE\s+\d+\s+\w+:\w+:(\d+)")
_PATIENCE = 5.0  # seconds


def check_keeper(home: Path, *, running: bool) -> Finding:
    living = living_keepers(home)
    if not living and running:
        advice = "restart the server; terminals and agents that ran have ended and can be restarted"
        return fail("keeper", "none is alive, though the server runs", advice)
    if not living:
        return ok("keeper", "none; the server starts one")
    alive = f"{len(living)} alive ({', '.join(living)})"
    # A keeper hears one server at a time: while there is one, only that can ask.
    return ok("keeper", alive) if running else _check_versions(home, living, alive)


def living_keepers(home: Path) -> list[str]:
    """Those that hold their lock. The kernel's list tells; trying the lock could keep one from starting."""
    try:
        held = set(_FLOCK.findall(Path("/proc/locks").read_text()))
    except OSError:
        held = set()
    locks = sorted((home / "keeper").glob("*.lock"))
    return [lock.stem for lock in locks if _inode(lock) in held]


def _check_versions(home: Path, living: list[str], alive: str) -> Finding:
    versions = {name: _version(home, name) for name in living}
    deaf = [name for name, version in versions.items() if version is None]
    if deaf:
        advice = f"see {home / 'keeper' / deaf[0]}.log; what it runs goes on until you end it"
        return fail("keeper", f"{', '.join(deaf)} lives but does not answer", advice)
    others = [f"{name} of version {version}" for name, version in versions.items() if version != VERSION]
    if others:
        advice = (
            "nothing to do: it keeps what it runs until that ends; the server starts one of its own version"
        )
        return warn("keeper", f"{alive}: {', '.join(others)}, ours is {VERSION}", advice)
    return ok("keeper", f"{alive}, version {VERSION}; no server is connected")


def _version(home: Path, name: str) -> int | None:
    """What it answers to a hello; None when it does not."""
    directory = os.open(home / "keeper", os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(_PATIENCE)
            link.connect(f"/proc/self/fd/{directory}/{name}.sock")  # a path may be too long for an address
            link.sendall(encode(Tag.HELLO, {"version": VERSION}))
            decoder = FrameDecoder()
            while data := link.recv(65536):
                for tag, header, _ in decoder.feed(data):
                    if tag == Tag.HELLO:
                        return int(header["version"])
    except (OSError, BadFrame, KeyError, ValueError):
        return None
    finally:
        os.close(directory)
    return None


def _inode(path: Path) -> str | None:
    try:
        return str(path.lstat().st_ino)
    except FileNotFoundError:  # it ended just now
        return None
