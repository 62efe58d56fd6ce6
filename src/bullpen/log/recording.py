"""The recorded output of one run of a worker, read by absolute offset.

The keeper's spool files are the recording and the page cache is the buffer, so that output is never held in
the memory of the server. Offsets never change.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path

from ..keeper.spool import SpoolGone, SpoolReader

MAX_SHARED_READ_BYTES = 2 << 20  # new output up to this size is read once for all watchers

IndexEntry = tuple[int, int, int, int]  # offset, time in ns, cols, rows
_NO_OUTPUT = (0, b"")


class Recording:
    """The recorded output of one run of a worker, read from the keeper's spool.

    `end` follows the keeper's notices; `start` is the oldest offset that is kept.
    """

    def __init__(self, path: Path) -> None:
        self._spool = SpoolReader(path)
        self._watchers: tuple[Callable[[], None], ...] = ()
        self._new_output = _NO_OUTPUT  # offset and bytes of the output that watchers are notified of
        self.end = self._bound("end")

    @property
    def start(self) -> int:
        """The offset of the oldest byte that is kept."""
        return self._bound("start")

    def _bound(self, which: str) -> int:
        """Return an end of the spool, or 0 if the worker has not started or its spool was removed."""
        try:
            bound: int = getattr(self._spool, which)
        except SpoolGone:
            return 0
        return bound

    def grow(self, end: int, last: bytes = b"") -> None:
        """Note that the keeper has written up to `end`, and call the watchers.

        `last` holds the newest bytes if the keeper sent them.
        """
        if end <= self.end:
            return
        before, self.end = self.end, end
        if len(last) == end - before:
            self._new_output = before, last
        elif end - before <= MAX_SHARED_READ_BYTES and len(self._watchers) > 1:
            self._new_output = self._read_new_output(before, end)
        try:
            for watcher in self._watchers:
                watcher()
        finally:
            self._new_output = _NO_OUTPUT

    def _read_new_output(self, start: int, end: int) -> tuple[int, bytes]:
        """Return offset and bytes of new output, or nothing if it cannot be read."""
        try:
            return start, self.read(start, end - start)
        except (SpoolGone, OSError):
            return _NO_OUTPUT  # the read of each watcher then fails the same way

    def watch(self, watcher: Callable[[], None], *, first: bool = False) -> None:
        """Call `watcher` whenever there is more output; it must not block.

        `first`: before the other watchers.
        """
        self._watchers = (watcher, *self._watchers) if first else (*self._watchers, watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """Stop calling `watcher`."""
        self._watchers = tuple(each for each in self._watchers if each != watcher)

    async def wait_for_growth(self, offset: int, seconds: float) -> bool:
        """Wait for output beyond `offset`, at most `seconds`; return whether there is any."""
        grown = asyncio.Event()
        self.watch(grown.set)
        try:
            async with asyncio.timeout(seconds):
                while self.end <= offset:
                    grown.clear()
                    await grown.wait()
        except TimeoutError:
            pass
        finally:
            self.unwatch(grown.set)
        return self.end > offset

    def read(self, offset: int, limit: int) -> bytes:
        """Return up to `limit` bytes of output from `offset` on; raise SpoolGone if they are not kept."""
        if offset >= self.end:
            return b""
        start, output = self._new_output
        if start <= offset < start + len(output):
            return output[offset - start : offset - start + limit]
        size = min(limit, self.end - offset)
        data = self._spool.read(offset, size)
        while len(data) < size and (more := self._spool.read(offset + len(data), size - len(data))):
            data += more  # of the next segment
        return data

    def window_sizes(self, after: int = 0) -> Iterator[tuple[int, int, int]]:
        """Yield each window size as (offset, cols, rows), in order; it applies from that offset on."""
        # Entries at offset 0 must be merged, as `index` does; later sizes need no earlier entry.
        entries = self._without_damage(self._spool.index_near(after)) if after else self.index()
        return ((offset, cols, rows) for offset, _, cols, rows in entries if cols and offset >= after)

    def offset_at(self, time_ns: int) -> int:
        """Return the offset of the output at a time in nanoseconds; all output before it is older."""
        try:
            offset = self._spool.offset_at(time_ns)
        except SpoolGone:
            return 0
        return self.end if offset is None else min(offset, self.end)

    def index(self, after: int = 0) -> Iterator[IndexEntry]:
        """Yield the keeper's index entries from `after` on, without damaged ones."""
        return self._without_damage(self._spool.index(after))

    def _without_damage(self, entries: Iterator[IndexEntry]) -> Iterator[IndexEntry]:
        """Yield the consistent entries; none if the spool was removed."""
        try:
            yield from consistent_entries(entries)
        except SpoolGone:
            return

    def segments(self) -> list[tuple[int, Iterator[IndexEntry]]]:
        """Return the segments of the spool with their index entries; none if the spool was removed."""
        try:
            return self._spool.segments()
        except SpoolGone:
            return []

    def close(self) -> None:
        self._spool.close()


def consistent_entries(entries: Iterable[IndexEntry]) -> Iterator[IndexEntry]:
    """Yield index entries without damaged ones, which lie before an earlier entry or far behind the next."""
    before: IndexEntry = (0, 0, 0, 0)
    for entry, after in pairwise(chain(entries, [None])):
        if entry is None or not _follows(before, entry):
            continue
        if after is None or _follows(entry, after) or not _follows(before, after):
            yield entry
            before = entry


def _follows(before: IndexEntry, after: IndexEntry) -> bool:
    """Return whether offset and time of the second entry are not before those of the first."""
    return before[0] <= after[0] and before[1] <= after[1]
