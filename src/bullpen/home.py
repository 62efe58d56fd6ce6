"""The data directory: private, owned by one server at a time, with secrets and the address in it."""

import errno
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import clock
from .domain.errors import Conflict, Invalid

# What is opened by name further down; the rest is replaced, never written through.
OPENED = (
    "bullpen.db",
    "bullpen.db-wal",
    "bullpen.db-shm",
    "bullpen.db.ballast",
    "images",
    "keeper",
    "logs",
    "overlays",
    "recordings",
    "screens",
    "spool",
    "trash",
)

ADDRESS = "server.json"
LOCK = "server.lock"
PATIENCE, LOOK_EVERY = 1.0, 0.02  # seconds


@contextmanager
def owned(home: Path) -> Iterator[None]:
    """Hold the directory for the block, or raise Conflict if another server holds it (flock, not a pid file).

    Removes the address of an earlier server first, and that of this server at the end. An address therefore
    belongs to the server that holds the lock.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    lock = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if not _take(lock):
            raise Conflict(f"another server runs on {home}; stop it first or set BULLPEN_HOME")
        _refuse_links(home)
        forget_address(home)
        try:
            yield
        finally:
            forget_address(home)
    finally:
        os.close(lock)


def is_owned(home: Path) -> bool:
    """Return whether a server holds the directory."""
    try:
        lock = os.open(home / LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _take(lock: int) -> bool:
    """Take the lock; return whether that worked within PATIENCE.

    For a moment `is_owned` may hold it, or a child that a killed server had forked but not yet executed.
    """
    deadline = clock.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if clock.monotonic() > deadline:
                return False
        else:
            return True
        time.sleep(LOOK_EVERY)


def _refuse_links(home: Path) -> None:
    """Somebody else may have planted one before the directory was ours alone."""
    for path in (home / name for name in OPENED):
        if path.is_symlink():
            raise Invalid(f"{path} is a link, and none is followed here; put the real thing in its place")


def write_address(home: Path, url: str) -> None:
    """Tells the command line where the server is."""
    write_private(home / ADDRESS, json.dumps({"url": url, "pid": os.getpid()}) + "\n")


def forget_address(home: Path) -> None:
    """Remove the address: after this server has ended, another program may listen there."""
    (home / ADDRESS).unlink(missing_ok=True)


def read_private(path: Path) -> str | None:
    """The text of a private file, made private again if it is not; None when there is none, or a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise
    with os.fdopen(descriptor) as file:
        os.fchmod(descriptor, 0o600)
        return file.read().strip() or None


def write_private(path: Path, said: str | bytes, *, durably: bool = False) -> None:
    """Replaces a file in one step by one only its owner can read, or leaves all as it was.

    Never follows a planted link. `durably`: it survives a power cut a moment later.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(said.encode() if isinstance(said, str) else said)
            file.flush()
            if durably:
                os.fsync(descriptor)
        os.replace(new, path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
