"""Notes of worktrees being made or restored, in our own directory: they tell what a killed server left.

A note is there before the first step and goes when the request is answered. A new server takes back what is
half made; the request that comes again finds what is whole by its key.
"""

from pathlib import Path

import msgspec
import structlog
from msgspec import Struct

from ..home import write_private

log = structlog.get_logger()


class PendingWorktree(Struct, frozen=True, kw_only=True):
    """`start` is the commit a new branch is made at; `done` when every step is, or will be."""

    id: str
    repo_id: str
    key: str | None
    name: str
    path: str
    branch: str
    start: str | None
    begun_at: int
    done: bool = False


class PendingWorktrees:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def note(self, errand: PendingWorktree) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._file(errand), msgspec.json.encode(errand).decode())

    def forget(self, errand: PendingWorktree) -> None:
        self._file(errand).unlink(missing_ok=True)

    def list(self) -> list[PendingWorktree]:
        found = [_read(path) for path in sorted(self._directory.glob("*.json"))]
        return [errand for errand in found if errand is not None]

    def done_for(self, repo_id: str, key: str) -> PendingWorktree | None:
        """What an earlier try of the same request has made."""
        mine = (each for each in self.list() if (each.repo_id, each.key) == (repo_id, key))
        return next((errand for errand in mine if errand.done), None)

    def _file(self, errand: PendingWorktree) -> Path:
        return self._directory / f"{errand.id}.json"


def _read(path: Path) -> PendingWorktree | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=PendingWorktree)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        log.warning("a note of a worktree cannot be read", path=str(path), reason=str(error))
        return None
