"""A note beside a new worktree: for which request it was made, and whether it is whole.

A server that dies while it makes one leaves it behind; the request that comes again finds it by its key.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

_FILE = "bullpen.json"  # in the worktree's own directory under .git/worktrees, where git lets it be


class Errand(Struct, frozen=True, kw_only=True):
    """`start` is the commit a new branch was made at; `done` when every step is."""

    key: str | None
    start: str | None
    done: bool = False


def note_errand(git_dir: Path, errand: Errand) -> None:
    (git_dir / _FILE).write_bytes(msgspec.json.encode(errand))


def read_errand(git_dir: Path) -> Errand | None:
    try:
        return msgspec.json.decode((git_dir / _FILE).read_bytes(), type=Errand)
    except (OSError, msgspec.DecodeError):
        return None
