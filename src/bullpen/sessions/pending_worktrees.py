"""Files in the data directory that record worktrees being made or restored, to recover from a killed server.

The file is written before the first step and deleted when the request is answered. After a kill, the next
server removes a worktree that is not complete. A repeated request finds a complete one by its idempotency
key.
"""

from pathlib import Path

import msgspec
import structlog
from msgspec import Struct

from ..home import write_private

log = structlog.get_logger()


class PendingWorktree(Struct, frozen=True, kw_only=True):
    """A worktree whose creation or restore is not answered yet.

    `start` is the commit of a new branch, None if the branch existed. `done` means that it is complete.
    """

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
    """The directory of these files, one JSON file per worktree."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def save(self, pending: PendingWorktree) -> None:
        """Write the record, before the next step of the work."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._file(pending), msgspec.json.encode(pending).decode())

    def delete(self, pending: PendingWorktree) -> None:
        """Delete the record, because the work is finished or undone."""
        self._file(pending).unlink(missing_ok=True)

    def list(self) -> list[PendingWorktree]:
        """Return all readable records."""
        found = [_read(path) for path in sorted(self._directory.glob("*.json"))]
        return [pending for pending in found if pending is not None]

    def find_finished(self, repo_id: str, key: str) -> PendingWorktree | None:
        """Return the complete worktree that an earlier try of the same request has made, or None."""
        mine = (each for each in self.list() if (each.repo_id, each.key) == (repo_id, key))
        return next((pending for pending in mine if pending.done), None)

    def _file(self, pending: PendingWorktree) -> Path:
        """Return the path of the file that records a pending worktree."""
        return self._directory / f"{pending.id}.json"


def _read(path: Path) -> PendingWorktree | None:
    """Return the record in a file; None if it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=PendingWorktree)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        log.warning("the record of a pending worktree cannot be read", path=str(path), reason=str(error))
        return None
