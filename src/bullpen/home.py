"""The data directory: private, owned by one server at a time, with the token and the address in it."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .domain.errors import Conflict


@contextmanager
def owned(home: Path) -> Iterator[None]:
    """Holds the directory for the block; a Conflict when another server has it (flock, not a pid file)."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    lock = os.open(home / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Conflict(f"another server runs on {home}; stop it first or set BULLPEN_HOME") from None
        yield
    finally:
        os.close(lock)


def owner_token(home: Path, given: str | None) -> str:
    """The owner's token: the given one, else the one in the file, else a new one."""
    path = home / "token"
    if given is None and path.is_file():
        return path.read_text().strip()
    token = given or secrets.token_urlsafe(32)
    write_private(path, token + "\n")
    return token


def write_address(home: Path, url: str) -> None:
    """Tells the command line where the server is."""
    write_private(home / "server.json", json.dumps({"url": url, "pid": os.getpid()}) + "\n")


def write_private(path: Path, text: str) -> None:
    """Replaces a file by one only its owner can read; never follows a planted link."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    os.replace(new, path)
