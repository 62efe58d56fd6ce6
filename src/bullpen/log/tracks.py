"""The tracks of a replay: events, and terminal output, each an ordered list of moments on one clock."""

from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import NamedTuple, Protocol

from ..domain.events import Event
from ..keeper.spool import SpoolGone
from .recording import IndexEntry, Recording
from .recording_directory import RecordedEvents

PIECE_BYTES = 64 << 10  # the most terminal output in one moment


class ChatMoment(NamedTuple):
    """A moment of a replay: an event of the session."""

    time: int  # nanoseconds since the epoch
    event: Event


class OutputMoment(NamedTuple):
    """A moment of a replay: output of a terminal, and its new size if that changes here."""

    time: int
    worker_id: str
    run: int
    offset: int
    data: bytes
    size: tuple[int, int] | None


Moment = ChatMoment | OutputMoment


class Track(Protocol):
    """One source of a replay: its moments by index. Times never decrease."""

    def __len__(self) -> int: ...
    def time(self, index: int) -> int:
        """Return the time of a moment in nanoseconds."""

    def read(self, index: int) -> Moment:
        """Return the moment at an index."""

    def index_at(self, time: int) -> int:
        """Return the index of the first moment at or after a time."""


class ChatTrack:
    """The events of a recording as moments."""

    def __init__(self, events: RecordedEvents) -> None:
        self.events = events

    def __len__(self) -> int:
        return len(self.events)

    def time(self, index: int) -> int:
        """Return the time of an event in nanoseconds."""
        return self.events.times[index] * 1_000_000

    def read(self, index: int) -> Moment:
        """Return the event at an index as a moment."""
        return ChatMoment(self.time(index), self.events.event(index))

    def index_at(self, time: int) -> int:
        """Return the index of the first event at or after a time in nanoseconds."""
        return self.events.index_at_time(-(-time // 1_000_000))


class TerminalTrack:
    """The output of one run of a terminal as moments; the keeper's index has the times."""

    def __init__(self, spool: Path, worker_id: str, run: int) -> None:
        self._worker_id = worker_id
        self._run = run
        self._recording = Recording(spool)
        self._offsets = array("Q")
        self._times = array("q")
        self._sizes = array("L")  # columns and rows in one number; 0: unchanged
        self._read_index()

    def __len__(self) -> int:
        return len(self._times)

    def time(self, index: int) -> int:
        """Return the time of a piece of output in nanoseconds."""
        return self._times[index]

    def read(self, index: int) -> Moment:
        """Return the output at an index, with the new window size if it changes there."""
        offset, end = self._offsets[index], self._end_offset(index)
        cols, rows = divmod(self._sizes[index], 1 << 16)
        size = (cols, rows) if cols else None
        return OutputMoment(
            self._times[index], self._worker_id, self._run, offset, self._read_output(offset, end), size
        )

    def index_at(self, time: int) -> int:
        """Return the index of the first output at or after a time."""
        return bisect_left(self._times, time)

    def index_of(self, offset: int) -> int:
        """Return the index of the moment that contains an offset, or of the first moment."""
        return max(0, bisect_right(self._offsets, max(0, offset)) - 1)

    def offset_at(self, index: int) -> int:
        """Return the offset at which a moment begins."""
        return self._offsets[index] if index < len(self) else self._recording.end

    def close(self) -> None:
        self._recording.close()

    def _read_output(self, offset: int, end: int) -> bytes:
        """Return the output between two offsets, as far as it is kept."""
        data = b""
        while offset + len(data) < end:
            try:
                piece = self._recording.read(offset + len(data), end - offset - len(data))
            except SpoolGone:
                break
            if not piece:
                break
            data += piece
        return data

    def _end_offset(self, index: int) -> int:
        """Return the offset at which a moment ends."""
        return self._offsets[index + 1] if index + 1 < len(self) else self._recording.end

    def _read_index(self) -> None:
        """Build the moments from the keeper's index entries, in pieces of at most PIECE_BYTES."""
        before: IndexEntry | None = None
        for entry in self._recording.index():
            if before is not None:
                self._add(before, min(entry[0], self._recording.end))
            before = entry
        if before is not None:
            self._add(before, self._recording.end)

    def _add(self, entry: IndexEntry, end: int) -> None:
        """Add the moments between an index entry and the offset `end`, one for each PIECE_BYTES."""
        offset, time, cols, rows = entry
        if offset > self._recording.end:
            return
        if not self._offsets:
            offset = min(offset, self._recording.start)
        size = cols << 16 | rows
        for start in range(offset, max(end, offset + 1), PIECE_BYTES):
            self._offsets.append(start)
            self._times.append(time)
            self._sizes.append(size)
            size = 0
