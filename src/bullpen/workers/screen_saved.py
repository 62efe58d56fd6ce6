"""Encoded screens in files, so that a restart need not read a recording from its beginning.

They are a cache: written without fsync, checked when read, ignored when anything is wrong with them.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..home import write_private

MAGIC = b"bullpen screen 1\n"
HEADER = struct.Struct(">QQQI")  # the place and the checksum of what follows
KEPT = 2  # the one before the last serves when the machine lost the last


class SavedPosition(NamedTuple):
    """How far into a recording a screen has come."""

    offset: int
    replies: int = 0  # given so far
    resizes: int = 0  # recorded at exactly this offset and already applied


class SavedScreens:
    """The files of one screen, each named by its offset."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, place: SavedPosition, encoded: bytes) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / f"{place.offset}.screen"
        write_private(path, MAGIC + HEADER.pack(*place, zlib.crc32(encoded)) + encoded)
        for old in self._paths()[KEPT:]:
            old.unlink(missing_ok=True)

    def newest_first(self, end: int) -> Iterator[tuple[SavedPosition, bytes]]:
        """Whole ones whose offset the recording, which ends at `end`, has reached."""
        for path in self._paths():
            if (saved := _parse(path.read_bytes())) and saved[0].offset <= end:
                yield saved

    def _paths(self) -> list[Path]:
        paths = [path for path in self._directory.glob("*.screen") if path.stem.isdecimal()]
        return sorted(paths, key=lambda path: int(path.stem), reverse=True)


def _parse(data: bytes) -> tuple[SavedPosition, bytes] | None:
    start = len(MAGIC) + HEADER.size
    if len(data) < start or not data.startswith(MAGIC):
        return None
    *place, checksum = HEADER.unpack_from(data, len(MAGIC))
    encoded = data[start:]
    return (SavedPosition(*place), encoded) if zlib.crc32(encoded) == checksum else None
