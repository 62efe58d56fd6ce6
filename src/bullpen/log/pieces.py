"""Recordings on their way out: read piece by piece, so that a long one takes no memory."""

from collections.abc import Iterator

from ..keeper.spool import SpoolGone
from ..wire.cast import Piece, cast
from .recording import IndexEntry, Recording

PIECE = 256 << 10


def output_chunks(recording: Recording, start: int, end: int) -> Iterator[bytes]:
    """The bytes from start to end; stops early when the keeper drops them meanwhile."""
    offset = start
    while offset < end:
        try:
            data = recording.read(offset, min(PIECE, end - offset))
        except SpoolGone:
            return
        if not data:
            return
        yield data
        offset += len(data)


def cast_lines(recording: Recording, title: str) -> Iterator[bytes]:
    return cast(title, _pieces(recording, recording.end))


def _pieces(recording: Recording, end: int) -> Iterator[Piece]:
    """What was said between two entries of the index, at the time of the first."""
    before: IndexEntry | None = None
    for entry in recording.index():
        if before is not None:
            yield from _between(recording, before, min(entry[0], end))
        before = entry
    if before is not None:
        yield from _between(recording, before, end)


def _between(recording: Recording, entry: IndexEntry, end: int) -> Iterator[Piece]:
    offset, time, cols, rows = entry
    yield (time, b"", cols, rows)
    for data in output_chunks(recording, offset, end):
        yield (time, data, 0, 0)
