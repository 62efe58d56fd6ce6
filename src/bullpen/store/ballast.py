"""A file that is there to be deleted: room to go on with when the disk is full."""

import os
from contextlib import suppress
from pathlib import Path

SIZE = 4 * 1024 * 1024


class Ballast:
    """Space on the database's disk, given back in need and taken again when there is plenty."""

    def __init__(self, path: Path, size: int = SIZE) -> None:
        self.path = path
        self.size = size

    def drop(self) -> None:
        """Gives the space back; a disk that was remounted read-only takes nothing away either."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def restore(self) -> bool:
        """Takes the space again; False when that would leave less than as much free, or cannot be done."""
        try:
            return self._is_there() or (self._has_room() and self._take())
        except OSError:
            self.drop()
            return False

    def _is_there(self) -> bool:
        try:
            return self.path.stat().st_size == self.size
        except FileNotFoundError:
            return False

    def _has_room(self) -> bool:
        space = os.statvfs(self.path.parent)
        return space.f_bavail * space.f_frsize >= 2 * self.size

    def _take(self) -> bool:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self.size)
        finally:
            os.close(descriptor)
        return True
