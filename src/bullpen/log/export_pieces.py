"""Read recordings for export piece by piece, so that a long one needs little memory."""

from collections.abc import Iterator

from ..keeper.spool import SpoolGone
from ..wire.cast import Piece, encode_cast
from .recording import IndexEntry, Recording

PIECE_BYTES = 256 << 10


def output_chunks(recording: Recording, start: int, end: int) -> Iterator[bytes]:
    """Yield the recorded output from start to end. Stop early if the keeper removes it meanwhile."""
    offset = start
    while offset < end:
        try:
            data = recording.read(offset, min(PIECE_BYTES, end - offset))
        except SpoolGone:
            return
        if not data:
            return
        yield data
        offset += len(data)


def cast_lines(recording: Recording, title: str) -> Iterator[bytes]:
    """Yield a recording as the lines of an asciicast file."""
    return encode_cast(title, _pieces(recording, recording.end))


def _pieces(recording: Recording, end: int) -> Iterator[Piece]:
    """Yield the output between two index entries with the time of the first."""
    before: IndexEntry | None = None
    for entry in recording.index():
        if before is not None:
            yield from _between(recording, before, min(entry[0], end))
        before = entry
    if before is not None:
        yield from _between(recording, before, end)


def _between(recording: Recording, entry: IndexEntry, end: int) -> Iterator[Piece]:
    """Yield the output from an index entry to `end`, with the time and size of the entry."""
    offset, time, cols, rows = entry
    yield (time, b"", cols, rows)
    for data in output_chunks(recording, offset, end):
        yield (time, data, 0, 0)
