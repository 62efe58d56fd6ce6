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
FLOOD = 2 << 10  # a read of a terminal this long says that more is coming
FLOOD_CHUNK = 64 << 10  # of it are written at once: it comes by the page, and each write costs as much
HELD = 0.008  # seconds that its bytes may wait for each other
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
        self._held = bytearray()  # read from a flood, not given to the spool yet
        self._holding = False  # a timer runs
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

    def read(self, mask: int = READABLE) -> bool:
        """Take what is there, at most a chunk; False when there was nothing."""
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # EIO: nobody has the terminal open any more
            data = b""
        if not data:
            self._end()
            return False
        self._held += data
        flows = self._fd in self._loop.hot
        if flows and (mask != READABLE or len(data) == CHUNK):  # it ends, or there is more
            self._loop.cool(self._fd)
        elif flows and self._wait_for_more():
            return True
        elif self.on_terminal and len(data) >= FLOOD:
            self._loop.heat(self._fd)
        self.settle()
        return True

    def settle(self) -> None:
        """What was read is in the spool afterwards, or waits for the disk."""
        if not self._held:
            return
        data, before = bytes(self._held), self.spool.end
        self._held.clear()
        try:
            end = self.spool.append(data)
        except OSError:
            self._loop.unwatch(self._fd)
            self._loop.later(RETRY, self._flush)
            if self.spool.end > before:
                self._grow(None)
            return
        self._grow(data)
        if self.spool.unindexed and not self._indexing:
            self._index_soon()
        if end >= self._limit:
            self._loop.unwatch(self._fd)

    def _wait_for_more(self) -> bool:
        """Whether the last words of a flood can wait for the next."""
        if self._loop.awaited or len(self._held) >= FLOOD_CHUNK:
            return False
        if not self._holding:
            self._holding = True
            self._loop.later(HELD, self._let_go)
        return True

    def _let_go(self) -> None:
        self._holding = False
        self.settle()

    def _end(self) -> None:
        """All that was said has been read."""
        self.settle()
        if not self.spool.waiting:
            self.close()

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
        self._end()

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
