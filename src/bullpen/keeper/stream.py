"""A stream: one output of a child on its way to its spool, one chunk at a time."""

from __future__ import annotations

import os
from time import monotonic

from .loop import READABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .loop import Loop
    from .spool import SpoolWriter

CHUNK = 64 << 10
FLOOD = 2 << 10  # a read this long says that more is coming
FLOOD_CHUNK = 32 << 10
POLITE_CHUNK = 8 << 10  # while somebody waits for an answer
SHORT = 2 << 10  # bytes the server is given along with the notice of them
WINDOW = 128 << 20  # of stdout, unconsumed, until the child has to wait
INDEXED_EVERY = 1.0  # seconds; what came when is written for all of them at once
RETRY = 1.0  # seconds until a refused write to the spool is tried again
_LAST_READS = 64  # of a chunk each: more than a pipe can hold
_NO_LIMIT = 1 << 62


class Stream:
    def __init__(
        self,
        key: tuple[str, int, str],
        fd: int,
        spool: SpoolWriter,
        *,
        loop: Loop,
        grown: set[Stream],
        on_end: Callable[[], None],
        window: int | None,
        on_terminal: bool,
    ) -> None:
        self.key = key  # worker, run, "out" or "err"
        self.on_terminal = on_terminal
        self.spool = spool
        self._fd = fd
        self._loop = loop
        self._grown = grown  # those the server is to be told about
        self._on_end = on_end
        self._window = self._limit = _NO_LIMIT if window is None else window
        self._indexing = False  # a timer runs
        self._told_with_notice = SHORT if on_terminal else 0
        self._untold: bytes | None = b""  # what the server does not know of; None: more than it is given
        os.set_blocking(fd, False)
        loop.watch(fd, READABLE, self.read)

    @property
    def ended(self) -> bool:
        return self._fd < 0

    @property
    def blocked(self) -> bool:
        """Not being read: the disk refuses, or too much is unconsumed."""
        return bool(self.spool.waiting) or self.spool.end >= self._limit

    def read(self, _mask: int = 0) -> bool:
        """Take what is there, at most a chunk; False when there was nothing."""
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            self._loop.cool(self._fd)
            return False
        except OSError:  # EIO: nobody has the terminal open any more
            data = b""
        if not data:
            self.close()
            return False
        if self._fd in self._loop.hot:
            data = self._read_on(data)
        before = self.spool.end
        try:
            end = self.spool.append(data)
        except OSError:
            self._loop.unwatch(self._fd)
            self._loop.later(RETRY, self._flush)
            if self.spool.end > before:
                self._grow(None)
            return True
        self._grow(data)
        if self.spool.unindexed and not self._indexing:
            self._index_soon()
        if end >= self._limit:
            self._loop.unwatch(self._fd)
        elif len(data) >= FLOOD and self._fd not in self._loop.hot:
            self._loop.heat(self._fd)
        return True

    def _read_on(self, first: bytes) -> bytes:
        """The rest of a flood's chunk: a pty gives a page a read, and a write for each costs as much."""
        parts, length = [first], len(first)
        most = POLITE_CHUNK if self._loop.awaited else FLOOD_CHUNK
        try:
            while length < most and (data := os.read(self._fd, CHUNK)):
                parts.append(data)
                length += len(data)
        except OSError:  # nothing more for now, or for ever: the next read says which
            pass
        return b"".join(parts)

    def take_untold(self) -> bytes:
        """The last bytes of the spool, all that the server does not know of, if they are short."""
        untold, self._untold = self._untold, b""
        return untold or b""

    def consumed(self, offset: int) -> None:
        self.spool.drop_before(offset)
        self._limit = self.spool.consumed + self._window
        self._resume()

    def drain(self) -> None:
        """Take what the child has left in the kernel and close; when blocked, only as far as that goes."""
        for _ in range(_LAST_READS):
            if self.blocked:
                return
            if not self.read():
                break
        self.close()

    def close(self) -> None:
        if not self.ended:
            self._loop.unwatch(self._fd)
            os.close(self._fd)
            self._fd = -1
            self._write_index()
            self._on_end()

    def _flush(self) -> None:
        end = self.spool.end
        try:
            self.spool.flush()
        except OSError:
            self._loop.later(RETRY, self._flush)
        if self.spool.end > end:
            self._grow(None)
        self._resume()

    def _index_soon(self) -> None:
        self._indexing = True
        self._loop.later(INDEXED_EVERY - monotonic() % INDEXED_EVERY, self._write_index)

    def _write_index(self) -> None:
        self._indexing = False
        try:
            self.spool.write_index()
        except OSError:
            self._index_soon()

    def _grow(self, data: bytes | None) -> None:
        """The server is to be told; None: of what, the spool knows."""
        self._grown.add(self)
        if data is None or self._untold is None or len(self._untold) + len(data) > self._told_with_notice:
            self._untold = None
        else:
            self._untold += data

    def _resume(self) -> None:
        if not (self.ended or self.blocked or self._loop.watches(self._fd)):
            self._loop.watch(self._fd, READABLE, self.read)
