"""The identity of a data directory, by which its server claims a database; stored in identity.json."""

import json
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..home import read_private, write_private
from .fence import FenceOwner, FencePosition

FILE = "identity.json"


def read_identity(home: Path, take_over: bool) -> FenceOwner:
    """Return the identity of a data directory; create one if it has none."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = _read(home)
    if "id" not in known:
        known = {"id": secrets.token_hex(16), "inode": home.stat().st_ino}
        with suppress(OSError):  # on a full disk the next start creates another one
            _write(home, known)
    return FenceOwner(
        known["id"], f"{socket.gethostname()}:{home}", take_over, FencePosition(*known.get("newest", ()))
    )


def note_loss(home: Path, newest: FencePosition) -> None:
    """Make the next start refuse a database older than this position, unless it takes over."""
    _write(home, _read(home) | {"newest": [newest.epoch, newest.commits]})


def forget_loss(home: Path) -> None:
    """Accept the database as it is, because a server has claimed it."""
    known = _read(home)
    if known.pop("newest", None):
        _write(home, known)


def _read(home: Path) -> dict[str, Any]:
    """Return the content of identity.json; empty if it was copied here with another data directory."""
    with suppress(ValueError):
        known: dict[str, Any] = json.loads(read_private(home / FILE) or "{}")
        if known.get("inode") == home.stat().st_ino:
            return known
    return {}


def _write(home: Path, known: dict[str, Any]) -> None:
    """Write identity.json durably."""
    write_private(home / FILE, json.dumps(known) + "\n", durably=True)
