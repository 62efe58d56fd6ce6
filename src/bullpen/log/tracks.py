"""What a player plays, as tracks: things that happened, in order, each at its time on the one clock."""

from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import NamedTuple, Protocol

from ..domain.events import Event
from ..keeper.spool import SpoolGone
from .recorded import RecordedEvents
from .recording import IndexEntry, Recording

PIECE = 64 << 10  # bytes of a terminal that are one moment


class ChatMoment(NamedTuple):
    """An event of the log."""

    time: int  # nanoseconds since the epoch
    event: Event


class OutputMoment(NamedTuple):
    """What a terminal said, and its size when that is another one from here on."""

    time: int
    worker_id: str
    run: int
    offset: int
    data: bytes
    size: tuple[int, int] | None


Moment = ChatMoment | OutputMoment


class Track(Protocol):
    """Its moments by place; times never go back."""

    def __len__(self) -> int: ...
    def time(self, place: int) -> int: ...
    def read(self, place: int) -> Moment: ...
    def place_at(self, time: int) -> int: ...


class ChatTrack:
    """The events of a recording."""

    def __init__(self, events: RecordedEvents) -> None:
        self.events = events

    def __len__(self) -> int:
        return len(self.events)

    def time(self, place: int) -> int:
        return self.events.times[place] * 1_000_000

    def read(self, place: int) -> Moment:
        return ChatMoment(self.time(place), self.events.event(place))

    def place_at(self, time: int) -> int:
        return self.events.place_at(-(-time // 1_000_000))


class TerminalTrack:
    """One run of a terminal: the keeper's index says when each of its bytes came."""

    def __init__(self, spool: Path, worker_id: str, run: int) -> None:
        self._worker_id = worker_id
        self._run = run
        self._recording = Recording(spool)
        self._offsets = array("Q")
        self._times = array("q")
        self._sizes = array("L")  # columns and rows in one number; 0: as before
        self._read_index()

    def __len__(self) -> int:
        return len(self._times)

    def time(self, place: int) -> int:
        return self._times[place]

    def read(self, place: int) -> Moment:
        offset, end = self._offsets[place], self._end_of(place)
        cols, rows = divmod(self._sizes[place], 1 << 16)
        size = (cols, rows) if cols else None
        return OutputMoment(
            self._times[place], self._worker_id, self._run, offset, self._bytes(offset, end), size
        )

    def place_at(self, time: int) -> int:
        return bisect_left(self._times, time)

    def place_of(self, offset: int) -> int:
        """The place that holds a byte, or the first one."""
        return max(0, bisect_right(self._offsets, max(0, offset)) - 1)

    def offset_at(self, place: int) -> int:
        return self._offsets[place] if place < len(self) else self._recording.end

    def close(self) -> None:
        self._recording.close()

    def _bytes(self, offset: int, end: int) -> bytes:
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

    def _end_of(self, place: int) -> int:
        return self._offsets[place + 1] if place + 1 < len(self) else self._recording.end

    def _read_index(self) -> None:
        """An entry for each of the keeper's, and one for each PIECE of what came between two of them."""
        before: IndexEntry | None = None
        for entry in self._recording.index():
            if before is not None:
                self._add(before, min(entry[0], self._recording.end))
            before = entry
        if before is not None:
            self._add(before, self._recording.end)

    def _add(self, entry: IndexEntry, end: int) -> None:
        offset, time, cols, rows = entry
        if offset > self._recording.end:
            return
        if not self._offsets:
            offset = min(offset, self._recording.start)
        size = cols << 16 | rows
        for start in range(offset, max(end, offset + 1), PIECE):
            self._offsets.append(start)
            self._times.append(time)
            self._sizes.append(size)
            size = 0
