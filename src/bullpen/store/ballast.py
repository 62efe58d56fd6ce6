"""A reserve file on the database's disk, deleted when the disk is full so that the server can go on."""

import os
from contextlib import suppress
from pathlib import Path

SIZE_BYTES = 4 * 1024 * 1024


class Ballast:
    """A file that reserves disk space."""

    def __init__(self, path: Path, size: int = SIZE_BYTES) -> None:
        self.path = path
        self.size = size

    def release(self) -> None:
        """Delete the reserve file, which frees its space.

        Errors are ignored, for example on a disk that became read-only.
        """
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def reserve(self) -> bool:
        """Create the reserve file; return False if that fails or would leave too little free space."""
        try:
            return self._exists() or (self._has_room() and self._create())
        except OSError:
            self.release()
            return False

    def _exists(self) -> bool:
        """Return whether the file exists with its full size."""
        try:
            return self.path.stat().st_size == self.size
        except FileNotFoundError:
            return False

    def _has_room(self) -> bool:
        """Return whether the disk has twice the size of the reserve."""
        space = os.statvfs(self.path.parent)
        return space.f_bavail * space.f_frsize >= 2 * self.size

    def _create(self) -> bool:
        """Create the file with all its blocks allocated; return True."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self.size)
        finally:
            os.close(descriptor)
        return True
