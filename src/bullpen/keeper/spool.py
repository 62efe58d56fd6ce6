"""The spool: what a child said, as segment files named by absolute offset, with an index of times and sizes.

Written by the keeper, read by the server, at the same time and without a lock: a segment only grows, the next
one starts where it ended, and its index exists before it does.
"""

from __future__ import annotations

import errno
import os
import struct
import time
from _thread import allocate_lock  # `threading` would cost the keeper memory
from bisect import bisect_left, bisect_right
from contextlib import suppress

from .directories import remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ENTRY = struct.Struct("!QqHH")  # offset, unix time in ns, cols, rows (0, 0: the size is as before)
SEGMENT = 4 << 20
KEEP_ALL = 1 << 62
MAX_OFFSET = 1 << 62  # no program prints as much; system calls refuse 1 << 63
ENTRY_GAP = 10_000_000  # ns between entries while output comes

_ENTRIES_AT_ONCE = 4096  # that a reader has in memory
_AS_BEFORE = (0, 0)
_clock, _BOOTTIME = time.clock_gettime_ns, time.CLOCK_BOOTTIME
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SpoolGone(LookupError):
    """These bytes have been dropped."""


class SpoolWriter:
    """One stream's segments, at most `retention` bytes of them, without those before `drop_before`."""

    def __init__(
        self,
        directory: int,
        segment: int = SEGMENT,
        retention: int = KEEP_ALL,
        size: tuple[int, int] = (0, 0),
    ) -> None:
        self._directory = directory  # ours from now on
        self._segment = segment
        self._retention = retention
        self._size = self._size_due = size
        self.consumed = 0
        self._epoch = time.time_ns() - _clock(_BOOTTIME)  # a clock set back never sets the index back
        self._next_entry = 0
        self._starts: list[int] = []
        self._segment_end = 0
        self._fd = self._index = -1
        self.unindexed = b""  # entries of the index that are not on disk yet
        self.end = 0
        self.waiting = b""  # read from the child, not yet on disk
        try:
            self._open_segment()
        except OSError:
            self.close()
            raise

    @property
    def start(self) -> int:
        return self._starts[0]

    def append(self, data: bytes | memoryview) -> int:
        """Write `data`; when the disk refuses (OSError) the rest is kept in `waiting` for `flush`."""
        try:
            if self.end >= self._segment_end:
                self._roll()
            elif (now := _clock(_BOOTTIME)) >= self._next_entry:
                self.unindexed += self._entry(now)
            written = os.write(self._fd, data)
        except OSError:
            self.waiting = bytes(data)
            raise
        self.end += written
        self.waiting = b""
        return self.end if written == len(data) else self.append(data[written:])

    def flush(self) -> int:
        """Try again what the disk refused."""
        return self.append(self.waiting)

    def resize(self, cols: int, rows: int) -> None:
        self._size = self._size_due = (cols, rows)
        self.unindexed += self._entry(_clock(_BOOTTIME))
        with suppress(OSError):  # then it is written later
            self.write_index()

    def write_index(self) -> None:
        """Writes the entries that wait: whoever appends does so from time to time, not for each word."""
        if self.unindexed:
            _write_whole(self._index, self.unindexed)
            self.unindexed = b""

    def drop_before(self, offset: int) -> None:
        """Free the whole segments below `offset`."""
        self.consumed = max(self.consumed, min(offset, self.end))
        with suppress(OSError):  # then the next call frees them
            self._trim()

    def close(self) -> None:
        if self._index >= 0:
            with suppress(OSError):
                self.write_index()
        self.unindexed = b""
        for fd in (self._fd, self._index, self._directory):
            if fd >= 0:
                os.close(fd)
        self._fd = self._index = self._directory = -1

    def _roll(self) -> None:
        self.write_index()
        old = self._fd, self._index
        self._open_segment()
        for fd in old:
            os.close(fd)
        self._trim()

    def _open_segment(self) -> None:
        name = _name(self.end)
        index = os.open(name + ".idx", _CREATE, 0o600, dir_fd=self._directory)
        try:
            self._size_due = self._size
            _write_whole(index, self._entry(_clock(_BOOTTIME)))
            self._fd = os.open(name + ".bin", _CREATE, 0o600, dir_fd=self._directory)
        except OSError:
            os.close(index)
            os.unlink(name + ".idx", dir_fd=self._directory)
            raise
        self._index = index
        self._starts.append(self.end)
        self._segment_end = self.end + self._segment

    def _entry(self, now: int) -> bytes:
        entry = ENTRY.pack(self.end, self._epoch + now, *self._size_due)
        self._size_due = _AS_BEFORE
        self._next_entry = now + ENTRY_GAP
        return entry

    def _trim(self) -> None:
        oldest = self._segment_end - self._retention  # when the segment now written is full
        while len(self._starts) > 1 and (self._starts[1] <= self.consumed or self._starts[0] < oldest):
            for suffix in (".bin", ".idx"):
                remove_file(_name(self._starts[0]) + suffix, self._directory)
            del self._starts[0]


class SpoolReader:
    """Reads a stream's spool by absolute offset, from any thread, while it is being written."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._fd = -1
        self._path = os.fspath(path)
        self._lock = allocate_lock()
        self._keep_open = True
        self._segment_start = 0

    def __del__(self) -> None:
        self._close()  # whoever reads what ended long ago has nobody to tell that it is the last

    @property
    def start(self) -> int:
        """The oldest offset kept."""
        return self._segments()[0]

    @property
    def end(self) -> int:
        last = self._segments()[-1]
        try:
            return last + os.stat(self._file(last, ".bin")).st_size
        except FileNotFoundError:
            raise SpoolGone(f"{self._path} is gone") from None

    def read(self, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on, b"" at the end; SpoolGone when they have been dropped."""
        if limit <= 0:
            return b""
        with self._lock:
            try:
                return self._read(offset, limit)
            finally:
                if not self._keep_open:
                    self._close()

    def _read(self, offset: int, limit: int) -> bytes:
        if self._fd < 0 or offset < self._segment_start:
            self._seek(offset)
        while True:
            if data := os.pread(self._fd, limit, offset - self._segment_start):
                return data
            if not self._next(offset):
                return b""

    def index(self, after: int = 0) -> Iterator[tuple[int, int, int, int]]:
        """Entries (offset, time in ns, cols, rows): first what holds at `after`, then each one behind it."""
        segments = self._segments()
        current: tuple[int, int, int, int] | None = None
        for start in segments[max(0, bisect_right(segments, after) - 1) :]:
            for entry in self._entries(start):
                if entry[0] > after and current is not None:
                    yield current
                    current = entry
                elif current is None or entry[2]:
                    current = entry
                else:
                    current = (*entry[:2], *current[2:])
        if current is not None:
            yield current

    def index_near(self, offset: int) -> Iterator[tuple[int, int, int, int]]:
        """The entries from shortly before `offset` on, as they are: what lies further back is not read."""
        segments = self._segments()
        # What was noted where a segment begins may be the last of the one before it.
        for start in segments[max(0, bisect_left(segments, offset) - 1) :]:
            yield from self._entries(start, offset)

    def offset_at(self, time: int) -> int | None:
        """Where what was said from a time (in ns) on begins, looked for by halves; None: nothing was."""
        segments = self._segments()
        first = bisect_left(segments, time, key=lambda start: self._first_at(start, -KEEP_ALL)[1])
        for start in segments[max(0, first - 1) : first + 1]:
            offset, at = self._first_at(start, time)
            if at >= time:
                return offset
        return None

    def segments(self) -> list[tuple[int, Iterator[tuple[int, int, int, int]]]]:
        """Where each segment begins, and its own entries of the index: what a copy is made of."""
        return [(start, self._entries(start)) for start in self._segments()]

    def close(self) -> None:
        """Nothing stays open from now on; who reads all the same opens and closes for himself."""
        with self._lock:
            self._keep_open = False
            self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _seek(self, offset: int) -> None:
        """Open the segment that holds `offset`."""
        while True:
            segments = self._segments()
            if offset < segments[0]:
                raise SpoolGone(f"offset {offset} of {self._path} is gone, the oldest is {segments[0]}")
            if self._open(segments[bisect_right(segments, offset) - 1]):
                return

    def _next(self, offset: int) -> bool:
        """Whether there is more to read at `offset` than the last try found, in this segment or another."""
        here = os.fstat(self._fd)
        position = offset - self._segment_start
        if position < here.st_size:
            return True
        if position == here.st_size and here.st_nlink:
            return position > 0 and self._open(offset)
        before = self._segment_start
        self._seek(offset)
        return self._segment_start != before

    def _open(self, start: int) -> bool:
        try:
            fd = os.open(self._file(start, ".bin"), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        self._close()
        self._fd, self._segment_start = fd, start
        return True

    def _segments(self) -> list[int]:
        try:
            names = os.listdir(self._path)
        except FileNotFoundError:
            names = []
        starts = sorted(start for name in names if (start := _start_of(name)) is not None)
        if not starts:
            raise SpoolGone(f"{self._path} is gone")
        return starts

    def _entries(self, start: int, near: int = 0) -> Iterator[tuple[int, int, int, int]]:
        """All of a segment's own, or those from shortly before an offset on."""
        try:
            with open(self._file(start, ".idx"), "rb") as file:
                if near > start:
                    file.seek(_last_before(file.fileno(), near) * ENTRY.size)
                while data := file.read(_ENTRIES_AT_ONCE * ENTRY.size):
                    yield from ENTRY.iter_unpack(data[: len(data) - len(data) % ENTRY.size])
        except FileNotFoundError:
            return

    def _first_at(self, start: int, time: int) -> tuple[int, int]:
        """Offset and time of the segment's first entry that is not before a time; (0, -1): there is none."""
        try:
            fd = os.open(self._file(start, ".idx"), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return 0, -1
        try:
            entries = range(os.fstat(fd).st_size // ENTRY.size)
            found = bisect_left(entries, time, key=lambda n: _entry(fd, n)[1])
            return _entry(fd, found) if found < len(entries) else (0, -1)
        finally:
            os.close(fd)

    def _file(self, start: int, suffix: str) -> str:
        return f"{self._path}/{_name(start)}{suffix}"


def _write_whole(index: int, entries: bytes) -> None:
    written = os.write(index, entries)
    if written < len(entries):
        os.ftruncate(index, os.lseek(index, -written, os.SEEK_CUR))
        raise OSError(errno.ENOSPC, "no room for the index")


def _name(start: int) -> str:
    return f"{start:020d}"


def _start_of(name: str) -> int | None:
    """The offset a segment is named by; None for any other file, which could not be opened by its offset."""
    digits, _, suffix = name.partition(".")
    if suffix != "bin" or not (digits.isascii() and digits.isdecimal()) or _name(int(digits)) != digits:
        return None
    return int(digits) if int(digits) <= MAX_OFFSET else None


def _last_before(index: int, offset: int) -> int:
    """The number of the last entry before an offset, or of an earlier one, looked for by halves."""
    entries = range(os.fstat(index).st_size // ENTRY.size - 1)

    def reach(number: int) -> int:
        # With its neighbour: an entry that has rotted must not lead past what is looked for.
        return max(_entry(index, number)[0], _entry(index, number + 1)[0])

    return bisect_left(entries, offset, key=reach)


def _entry(index: int, number: int) -> tuple[int, int]:
    offset, at, _, _ = ENTRY.unpack(os.pread(index, ENTRY.size, number * ENTRY.size))
    return offset, at
