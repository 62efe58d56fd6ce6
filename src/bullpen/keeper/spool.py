"""Write and read spools: the output of a child in segment files, with an index of times and window sizes.

The keeper writes a spool while the server reads it, without a lock. A segment is named by the absolute offset
it starts at and only grows; the next one starts where it ends; its index file exists before it does.
"""

from __future__ import annotations

import errno
import os
import struct
import time
from _thread import allocate_lock  # importing `threading` would cost the keeper memory
from bisect import bisect_left, bisect_right
from contextlib import suppress

from .directories import remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

INDEX_ENTRY = struct.Struct("!QqHH")  # offset, unix time in ns, cols, rows (0, 0: the size has not changed)
SEGMENT_BYTES = 4 << 20
NO_LIMIT = 1 << 62
MAX_OFFSET = 1 << 62  # no program prints so much; system calls refuse 1 << 63
ENTRY_INTERVAL_NS = 10_000_000  # between two index entries at least, but for resizes

_ENTRIES_PER_READ = 4096
_SIZE_UNCHANGED = (0, 0)
_clock, _BOOTTIME = time.clock_gettime_ns, time.CLOCK_BOOTTIME
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SpoolGone(LookupError):
    """The bytes at this offset, or the whole spool, have been removed."""


class SpoolWriter:
    """Appends to the spool of one stream, and removes old segments.

    It keeps at most `retention` bytes, and none that `drop_before` has freed. `directory` is a descriptor,
    which the writer closes.
    """

    def __init__(
        self,
        directory: int,
        segment: int = SEGMENT_BYTES,
        retention: int = NO_LIMIT,
        size: tuple[int, int] = (0, 0),
    ) -> None:
        self._directory = directory
        self._segment = segment
        self._retention = retention
        self._size = self._unwritten_size = size
        self.consumed = 0
        # Times in the index never decrease, even if the clock is set back.
        self._epoch = time.time_ns() - _clock(_BOOTTIME)
        self._next_entry = 0
        self._starts: list[int] = []
        self._segment_end = 0
        self._fd = self._index = -1
        self.unindexed = b""  # index entries that are not on disk yet
        self.end = 0
        self.unwritten = b""  # read from the child, not on disk yet
        try:
            self._open_segment()
        except OSError:
            self.close()
            raise

    @property
    def start(self) -> int:
        """The oldest offset that is kept."""
        return self._starts[0]

    def append(self, data: bytes | memoryview) -> int:
        """Write `data` and return the new end.

        Raise OSError if the disk refuses it; the rest is then kept in `unwritten` for `flush`.
        """
        try:
            if self.end >= self._segment_end:
                self._start_next_segment()
            elif (now := _clock(_BOOTTIME)) >= self._next_entry:
                self.unindexed += self._make_entry(now)
            written = os.write(self._fd, data)
        except OSError:
            self.unwritten = bytes(data)
            raise
        self.end += written
        self.unwritten = b""
        return self.end if written == len(data) else self.append(data[written:])

    def flush(self) -> int:
        """Try again to write what the disk refused."""
        return self.append(self.unwritten)

    def resize(self, cols: int, rows: int) -> None:
        """Note in the index that the window has this size from the current end on."""
        self._size = self._unwritten_size = (cols, rows)
        self.unindexed += self._make_entry(_clock(_BOOTTIME))
        with suppress(OSError):  # it is written later
            self.write_index()

    def write_index(self) -> None:
        """Write the index entries in memory. The caller does this at intervals, not for each `append`."""
        if self.unindexed:
            _write_whole(self._index, self.unindexed)
            self.unindexed = b""

    def drop_before(self, offset: int) -> None:
        """Remove the segments that lie wholly below `offset`."""
        self.consumed = max(self.consumed, min(offset, self.end))
        with suppress(OSError):  # the next call removes them
            self._remove_old_segments()

    def close(self) -> None:
        """Write the last index entry if possible, and close the files."""
        if self._index >= 0:
            with suppress(OSError):
                self.write_index()
        self.unindexed = b""
        for fd in (self._fd, self._index, self._directory):
            if fd >= 0:
                os.close(fd)
        self._fd = self._index = self._directory = -1

    def _start_next_segment(self) -> None:
        """Close the current segment and open the next one at the current end."""
        self.write_index()
        old = self._fd, self._index
        self._open_segment()
        for fd in old:
            os.close(fd)
        self._remove_old_segments()

    def _open_segment(self) -> None:
        """Create the next segment at the current end: its output file, and its index with a first entry."""
        name = _segment_name(self.end)
        index = os.open(name + ".idx", _CREATE, 0o600, dir_fd=self._directory)
        try:
            self._unwritten_size = self._size
            _write_whole(index, self._make_entry(_clock(_BOOTTIME)))
            self._fd = os.open(name + ".bin", _CREATE, 0o600, dir_fd=self._directory)
        except OSError:
            os.close(index)
            os.unlink(name + ".idx", dir_fd=self._directory)
            raise
        self._index = index
        self._starts.append(self.end)
        self._segment_end = self.end + self._segment

    def _make_entry(self, now: int) -> bytes:
        """Return an index entry for the current end, to be written next; note when another one is due."""
        entry = INDEX_ENTRY.pack(self.end, self._epoch + now, *self._unwritten_size)
        self._unwritten_size = _SIZE_UNCHANGED
        self._next_entry = now + ENTRY_INTERVAL_NS
        return entry

    def _remove_old_segments(self) -> None:
        """Remove the segments that are consumed or exceed the retention."""
        oldest = self._segment_end - self._retention  # computed as if the current segment were full
        while len(self._starts) > 1 and (self._starts[1] <= self.consumed or self._starts[0] < oldest):
            for suffix in (".bin", ".idx"):
                remove_file(_segment_name(self._starts[0]) + suffix, self._directory)
            del self._starts[0]


class SpoolReader:
    """Reads the spool of one stream by absolute offset, from any thread, while the keeper writes it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._fd = -1
        self._path = os.fspath(path)
        self._lock = allocate_lock()
        self._keep_open = True
        self._segment_start = 0

    def __del__(self) -> None:
        self._close()  # no caller closes the reader of an old recording

    @property
    def start(self) -> int:
        """The oldest offset that is kept."""
        return self._segments()[0]

    @property
    def end(self) -> int:
        """The offset behind the last byte that was written. Raises SpoolGone if the spool was removed."""
        last = self._segments()[-1]
        try:
            return last + os.stat(self._file(last, ".bin")).st_size
        except FileNotFoundError:
            raise SpoolGone(f"{self._path} is gone") from None

    def read(self, offset: int, limit: int) -> bytes:
        """Return at most `limit` bytes at `offset`, b"" at the end. Raise SpoolGone if they were removed."""
        if limit <= 0:
            return b""
        with self._lock:
            try:
                return self._read(offset, limit)
            finally:
                if not self._keep_open:
                    self._close()

    def _read(self, offset: int, limit: int) -> bytes:
        """Read at an offset, from the next segments too if this one is at its end."""
        if self._fd < 0 or offset < self._segment_start:
            self._seek(offset)
        while True:
            if data := os.pread(self._fd, limit, offset - self._segment_start):
                return data
            if not self._has_more(offset):
                return b""

    def index(self, after: int = 0) -> Iterator[tuple[int, int, int, int]]:
        """Yield the entry (offset, time in ns, cols, rows) in force at `after`, then each later entry."""
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
        """Yield the entries from shortly before `offset` on, as they are stored; read no earlier ones."""
        segments = self._segments()
        # An entry at the start of a segment may be the last one of the segment before it.
        for start in segments[max(0, bisect_left(segments, offset) - 1) :]:
            yield from self._entries(start, offset)

    def offset_at(self, time: int) -> int | None:
        """Return the offset of the first output at or after a time in ns, or None if there is none."""
        segments = self._segments()

        def begin(number: int) -> int:
            # A power failure can leave an index empty: the time of its segment is then that of the next one.
            times = (self._first_at(start, -NO_LIMIT)[1] for start in segments[number:])
            return next((at for at in times if at >= 0), NO_LIMIT)

        first = bisect_left(range(len(segments)), time, key=begin)
        for start in segments[max(0, first - 1) :]:
            offset, at = self._first_at(start, time)
            if at >= time:
                return offset
        return None

    def segments(self) -> list[tuple[int, Iterator[tuple[int, int, int, int]]]]:
        """Return the start of each segment with its own index entries, as an export copies them."""
        return [(start, self._entries(start)) for start in self._segments()]

    def close(self) -> None:
        """Close the files. A later `read` opens and closes them by itself."""
        with self._lock:
            self._keep_open = False
            self._close()

    def _close(self) -> None:
        """Close the file of the open segment, if one is open."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _seek(self, offset: int) -> None:
        """Open the segment that holds `offset`; raise SpoolGone if it has been removed."""
        while True:
            segments = self._segments()
            if offset < segments[0]:
                raise SpoolGone(f"offset {offset} of {self._path} is gone, the oldest is {segments[0]}")
            if self._open(segments[bisect_right(segments, offset) - 1]):
                return

    def _has_more(self, offset: int) -> bool:
        """Return whether another read at `offset` may find more, after opening the segment that has it."""
        status = os.fstat(self._fd)
        position = offset - self._segment_start
        if position < status.st_size:
            return True
        if position == status.st_size and status.st_nlink:
            return position > 0 and self._open(offset)
        before = self._segment_start
        self._seek(offset)
        return self._segment_start != before

    def _open(self, start: int) -> bool:
        """Open a segment; return False if it was removed."""
        try:
            fd = os.open(self._file(start, ".bin"), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        self._close()
        self._fd, self._segment_start = fd, start
        return True

    def _segments(self) -> list[int]:
        """Return the start offsets of all segments, or raise SpoolGone if there are none."""
        try:
            names = os.listdir(self._path)
        except FileNotFoundError:
            names = []
        starts = sorted(start for name in names if (start := _start_of(name)) is not None)
        if not starts:
            raise SpoolGone(f"{self._path} is gone")
        return starts

    def _entries(self, start: int, near: int = 0) -> Iterator[tuple[int, int, int, int]]:
        """Yield the index entries of a segment: all of them, or those from shortly before `near` on."""
        try:
            with open(self._file(start, ".idx"), "rb") as file:
                if near > start:
                    file.seek(_last_before(file.fileno(), near) * INDEX_ENTRY.size)
                while data := file.read(_ENTRIES_PER_READ * INDEX_ENTRY.size):
                    yield from INDEX_ENTRY.iter_unpack(data[: len(data) - len(data) % INDEX_ENTRY.size])
        except FileNotFoundError:
            return

    def _first_at(self, start: int, time: int) -> tuple[int, int]:
        """Return offset and time of a segment's first entry at or after a time; (0, -1) if there is none."""
        try:
            fd = os.open(self._file(start, ".idx"), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return 0, -1
        try:
            entries = range(os.fstat(fd).st_size // INDEX_ENTRY.size)
            found = bisect_left(entries, time, key=lambda n: _entry(fd, n)[1])
            return _entry(fd, found) if found < len(entries) else (0, -1)
        finally:
            os.close(fd)

    def _file(self, start: int, suffix: str) -> str:
        """Return the path of a segment's output file or, by its suffix, of its index file."""
        return f"{self._path}/{_segment_name(start)}{suffix}"


def _write_whole(index: int, entries: bytes) -> None:
    """Write all entries to the index file, or none of them and raise OSError."""
    written = os.write(index, entries)
    if written < len(entries):
        os.ftruncate(index, os.lseek(index, -written, os.SEEK_CUR))
        raise OSError(errno.ENOSPC, "no room for the index")


def _segment_name(start: int) -> str:
    """Return the file name of the segment that begins at an offset: the offset in 20 digits."""
    return f"{start:020d}"


def _start_of(name: str) -> int | None:
    """Return the offset in a segment's file name; None for a file that is no segment."""
    digits, _, suffix = name.partition(".")
    if suffix != "bin" or not (digits.isascii() and digits.isdecimal()):
        return None
    if _segment_name(int(digits)) != digits:
        return None
    return int(digits) if int(digits) <= MAX_OFFSET else None


def _last_before(index: int, offset: int) -> int:
    """Return the number of the last entry before an offset, or of an earlier one, by bisection."""
    entries = range(os.fstat(index).st_size // INDEX_ENTRY.size - 1)

    def reach(number: int) -> int:
        # The neighbour is used too: one damaged entry must not make the search skip what it looks for.
        return max(_entry(index, number)[0], _entry(index, number + 1)[0])

    return bisect_left(entries, offset, key=reach)


def _entry(index: int, number: int) -> tuple[int, int]:
    """Return offset and time of the index entry with this number."""
    offset, at, _, _ = INDEX_ENTRY.unpack(os.pread(index, INDEX_ENTRY.size, number * INDEX_ENTRY.size))
    return offset, at
