"""Save encoded screens in files, so that a restart need not read a recording from its start.

The files are a cache: written without fsync, checked by a checksum, and ignored if they are damaged.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..home import write_private

MAGIC = b"bullpen screen 1\n"
HEADER = struct.Struct(">QQQI")  # the position, and the checksum of the encoded screen
MAX_FILES = 2  # the older file is used if a power failure damaged the newer one


class ScreenPosition(NamedTuple):
    """The position of a screen in its recording."""

    offset: int
    replies: int = 0  # made so far
    resizes: int = 0  # recorded at exactly this offset and already applied


class SavedScreens:
    """The saved files of one screen, each named by its offset."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, position: ScreenPosition, encoded: bytes) -> None:
        """Save a screen and remove old files."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / f"{position.offset}.screen"
        write_private(path, MAGIC + HEADER.pack(*position, zlib.crc32(encoded)) + encoded)
        for old in self._paths()[MAX_FILES:]:
            old.unlink(missing_ok=True)

    def newest_first(self, end: int) -> Iterator[tuple[ScreenPosition, bytes]]:
        """Yield the undamaged screens whose offset is at most `end`, the end of the recording."""
        for path in self._paths():
            if (saved := _parse(path.read_bytes())) and saved[0].offset <= end:
                yield saved

    def _paths(self) -> list[Path]:
        """Return the saved files, the newest first."""
        paths = [path for path in self._directory.glob("*.screen") if path.stem.isdecimal()]
        return sorted(paths, key=lambda path: int(path.stem), reverse=True)


def _parse(data: bytes) -> tuple[ScreenPosition, bytes] | None:
    """Return position and encoded screen of a file, or None if it is damaged."""
    start = len(MAGIC) + HEADER.size
    if len(data) < start or not data.startswith(MAGIC):
        return None
    *position, checksum = HEADER.unpack_from(data, len(MAGIC))
    encoded = data[start:]
    return (ScreenPosition(*position), encoded) if zlib.crc32(encoded) == checksum else None
