"""The data directory: private files, held by one server at a time, with the server's address."""

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

# Files and directories that are opened by name; all others are replaced and never written through.
OPENED_BY_NAME = (
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
LOCK_TIMEOUT, LOCK_POLL_INTERVAL = 1.0, 0.02  # seconds


@contextmanager
def hold(home: Path) -> Iterator[None]:
    """Hold the directory for the block, or raise Conflict if another server holds it (flock, not a pid file).

    The address of an earlier server is removed first, and that of this server at the end. An address
    therefore belongs to the server that holds the lock.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    lock = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if not _take_lock(lock):
            raise Conflict(f"another server runs on {home}; stop it first or set BULLPEN_HOME")
        _refuse_links(home)
        remove_address(home)
        try:
            yield
        finally:
            remove_address(home)
    finally:
        os.close(lock)


def is_held(home: Path) -> bool:
    """Return whether a server holds the lock of the directory."""
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


def _take_lock(lock: int) -> bool:
    """Take the lock; return whether that worked within LOCK_TIMEOUT.

    For a moment `is_held` may hold it, or a child that a killed server had forked but not yet executed.
    """
    deadline = clock.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if clock.monotonic() > deadline:
                return False
        else:
            return True
        time.sleep(LOCK_POLL_INTERVAL)


def _refuse_links(home: Path) -> None:
    """Raise Invalid if a name is a symlink: another user may have planted it."""
    for path in (home / name for name in OPENED_BY_NAME):
        if path.is_symlink():
            raise Invalid(f"{path} is a symbolic link, which is not followed; replace it by its target")


def write_address(home: Path, url: str) -> None:
    """Write the address of the server for the command line."""
    write_private(home / ADDRESS, json.dumps({"url": url, "pid": os.getpid()}) + "\n")


def remove_address(home: Path) -> None:
    """Remove the address: after this server has ended, another program may listen there."""
    (home / ADDRESS).unlink(missing_ok=True)


def read_private(path: Path) -> str | None:
    """Return the text of a private file, or None if it does not exist or is a symlink.

    The file is made private again if it is not.
    """
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


def write_private(path: Path, content: str | bytes, *, durably: bool = False) -> None:
    """Replace a file atomically by one that only its owner can read; a symlink is replaced, not followed.

    `durably`: the new content survives a power failure right afterwards.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            if durably:
                os.fsync(descriptor)
        os.replace(new, path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
