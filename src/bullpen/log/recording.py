"""The bytes one run of a worker said, by absolute offset.

The spool on disk is the recording and the page cache is its buffer: nothing a worker says is held in our
own memory (R8). The offsets never move.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path

from ..keeper.spool import SpoolGone, SpoolReader

SHARED = 2 << 20  # bytes at once that all who are told of them get from one read

IndexEntry = tuple[int, int, int, int]  # offset, time in ns, cols, rows
_NONE = (0, b"")


class Recording:
    """Reads one spool. `end` follows what the keeper says; `start` what it still has."""

    def __init__(self, path: Path) -> None:
        self._spool = SpoolReader(path)
        self._watchers: tuple[Callable[[], None], ...] = ()
        self._news = _NONE  # offset and bytes of what watchers are being told of
        self.end = self._bound("end")

    @property
    def start(self) -> int:
        return self._bound("start")

    def _bound(self, which: str) -> int:
        """A worker that has not begun, or whose recording was removed, said nothing."""
        try:
            bound: int = getattr(self._spool, which)
        except SpoolGone:
            return 0
        return bound

    def grow(self, end: int, last: bytes = b"") -> None:
        """The keeper has written up to here; these are the last bytes of it, where it says them."""
        if end <= self.end:
            return
        before, self.end = self.end, end
        if len(last) == end - before:
            self._news = before, last
        elif end - before <= SHARED and len(self._watchers) > 1:
            self._news = self._read_news(before, end)
        try:
            for watcher in self._watchers:
                watcher()
        finally:
            self._news = _NONE

    def _read_news(self, start: int, end: int) -> tuple[int, bytes]:
        try:
            return start, self.read(start, end - start)
        except (SpoolGone, OSError):
            return _NONE  # each finds out for itself

    def watch(self, watcher: Callable[[], None], *, first: bool = False) -> None:
        """Calls `watcher` whenever there is more, before or after those who are there; it must not block."""
        self._watchers = (watcher, *self._watchers) if first else (*self._watchers, watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        self._watchers = tuple(each for each in self._watchers if each != watcher)

    async def grown(self, offset: int, seconds: float) -> bool:
        """Waits until there is more than up to an offset, but only for so long; whether there is."""
        news = asyncio.Event()
        self.watch(news.set)
        try:
            async with asyncio.timeout(seconds):
                while self.end <= offset:
                    news.clear()
                    await news.wait()
        except TimeoutError:
            pass
        finally:
            self.unwatch(news.set)
        return self.end > offset

    def read(self, offset: int, limit: int) -> bytes:
        """Up to `limit` bytes from an offset on; raises SpoolGone when they are no longer kept."""
        if offset >= self.end:
            return b""
        start, news = self._news
        if start <= offset < start + len(news):
            return news[offset - start : offset - start + limit]
        wanted = min(limit, self.end - offset)
        data = self._spool.read(offset, wanted)
        while len(data) < wanted and (more := self._spool.read(offset + len(data), wanted - len(data))):
            data += more  # of the next segment
        return data

    def sizes(self, after: int = 0) -> Iterator[tuple[int, int, int]]:
        """Every window size as (offset, cols, rows), in order; it counts from that byte on."""
        # What is noted at the very first byte comes as one; behind it nothing depends on what was before.
        entries = self._whole(self._spool.index_near(after)) if after else self.index()
        return ((offset, cols, rows) for offset, _, cols, rows in entries if cols and offset >= after)

    def offset_at(self, time_ns: int) -> int:
        """Where the output of a moment begins: everything before it was said earlier."""
        try:
            offset = self._spool.offset_at(time_ns)
        except SpoolGone:
            return 0
        return self.end if offset is None else min(offset, self.end)

    def index(self, after: int = 0) -> Iterator[IndexEntry]:
        """The index as the keeper wrote it, from what holds at an offset on; what has rotted is left out."""
        return self._whole(self._spool.index(after))

    def _whole(self, entries: Iterator[IndexEntry]) -> Iterator[IndexEntry]:
        try:
            yield from in_order(entries)
        except SpoolGone:
            return

    def segments(self) -> list[tuple[int, Iterator[IndexEntry]]]:
        """The segments of the spool with their own index entries; none when it is gone."""
        try:
            return self._spool.segments()
        except SpoolGone:
            return []

    def close(self) -> None:
        self._spool.close()


def in_order(entries: Iterable[IndexEntry]) -> Iterator[IndexEntry]:
    """The keeper never goes back: who lies before the last entry, or far behind the next one, is wrong."""
    before: IndexEntry = (0, 0, 0, 0)
    for this, after in pairwise(chain(entries, [None])):
        if this is None or not _follows(before, this):
            continue
        if after is None or _follows(this, after) or not _follows(before, after):
            yield this
            before = this


def _follows(before: IndexEntry, after: IndexEntry) -> bool:
    return before[0] <= after[0] and before[1] <= after[1]
