"""A stream: one output of a child on its way to its spool, one chunk at a time."""

from __future__ import annotations

import errno
import os
from time import monotonic

from .frames import to_json
from .loop import READABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .loop import EventLoop
    from .spool import SpoolWriter

CHUNK = 64 << 10
MUCH = 32 << 10  # a read this long: the pipe was full, or as good as that, and who fills it has to wait
FLOOD = 2 << 10  # a read of a terminal this long says that more is coming
FULL = 4095  # bytes, all that a terminal holds: after a read this long the next page is on its way
AT_ONCE = 16 << 10  # bytes of a flood after which we look whether anybody else has something to say
FLOOD_CHUNK = 64 << 10  # of it are written at once: it comes by the page, and each write costs as much
ROOM = FLOOD_CHUNK + CHUNK  # for what is read of it
HELD = 0.008  # seconds that its bytes may wait for each other
SHORT = 2 << 10  # bytes the server is given along with the notice of them
WINDOW = 128 << 20  # of stdout, unconsumed, until the child has to wait
INDEXED_EVERY = 1.0  # seconds; what came when is written for all of them at once
RETRY = 1.0  # seconds until a refused write to the spool is tried again
_LAST_READS = 64  # of a chunk each: more than a pipe can hold
_NO_LIMIT = 1 << 62
UNHEEDED = 1 << 62  # nobody waits for what it says


class OutputStream:
    def __init__(
        self,
        key: tuple[str, int, str],  # worker, run, "out" or "err"
        fd: int,
        spool: SpoolWriter,
        *,
        loop: EventLoop,
        grown: set[OutputStream],
        on_end: Callable[[], None],
        window: int | None,
        on_terminal: bool,
    ) -> None:
        self.label = to_json(key)[:-1] + ","  # a notice says this, and its end
        self.on_terminal = on_terminal
        self.spool = spool
        self.heeded_from = UNHEEDED  # or where it stood when it was last typed to, until that is answered
        self._fd = fd
        self._loop = loop
        self._grown = grown  # those the server is to be told about
        self._on_end = on_end
        self._window = self._limit = _NO_LIMIT if window is None else window
        self._indexing = False  # a timer runs
        self._room: memoryview | None = None  # what a flood is read into, while there is one
        self._filled = 0  # bytes of it that are not in the spool yet
        self._holding = False  # a timer runs
        self._told_with_notice = SHORT if on_terminal else 0
        self._untold: bytes | None = b""  # what the server does not know of; None: more than it is given
        self.hung_up = False  # the child is gone: EIO means that nothing more will come
        self._pausing = False  # a timer runs, because a read was refused
        os.set_blocking(fd, False)
        loop.watch(fd, READABLE, self.read)

    @property
    def ended(self) -> bool:
        return self._fd < 0

    @property
    def blocked(self) -> bool:
        """Not being read: the disk or the kernel refuses, or too much is unconsumed."""
        return self._pausing or bool(self.spool.waiting) or self.spool.end >= self._limit

    def read(self, mask: int = READABLE) -> bool:
        """Take what is there, at most a chunk; False when there was nothing."""
        if self._room is not None:
            return self._read_flood(mask, self._room)
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return False
        except OSError as error:
            if not self._says_end(error):
                self._pause()
                return False
            data = b""
        if not data:
            self._end()
            return False
        if self.on_terminal and len(data) >= FLOOD:
            self._room = memoryview(bytearray(ROOM))
            self._loop.heat(self._fd, self._cooled)
        elif len(data) >= MUCH:
            self._loop.stay_awake()
        self._store(data)
        return True

    def _read_flood(self, mask: int, room: memoryview) -> bool:
        """The same page after page, which wait for each other: twenty thousand of them come in a second."""
        before = filled = self._filled
        enough = before + (0 if self._loop.awaited else AT_ONCE)
        try:
            while True:
                filled += (size := os.readv(self._fd, (room[filled:],)))
                if size < FULL or filled >= enough:
                    break
        except BlockingIOError:
            size = filled - before
            if not size:
                return False
        except OSError as error:
            size = filled - before
            if not size and not self._says_end(error):
                self._pause()
                return False
        self._filled = filled
        if not size:
            self._end()
            return False
        if mask != READABLE or filled == ROOM:  # it ends, or there is more
            self._loop.cool(self._fd)
        elif not self._wait_for_more():
            self.settle()
        return True

    def _says_end(self, error: OSError) -> bool:
        """Return whether the terminal was hung up. Until the child's exit we have it open ourselves."""
        return error.errno == errno.EIO and self.on_terminal and self.hung_up

    def _pause(self) -> None:
        """The kernel cannot read now (no memory, for example): what the child said is still there."""
        self._pausing = True
        self._loop.unwatch(self._fd)
        self._loop.later(RETRY, self._go_on)

    def _go_on(self) -> None:
        self._pausing = False
        self._resume()

    def _cooled(self) -> None:
        self.settle()
        self._room = None

    def settle(self) -> None:
        """What was read is in the spool afterwards, or waits for the disk."""
        if self._room is not None and self._filled:
            read, self._filled = self._room[: self._filled], 0
            self._store(read)

    def _store(self, data: bytes | memoryview) -> None:
        before = self.spool.end
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
        if self._filled >= FLOOD_CHUNK or self._loop.awaited:
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

    def _grow(self, data: bytes | memoryview | None) -> None:
        """The server is to be told; None: of what, the spool knows."""
        self._grown.add(self)
        if data is None or self._untold is None or len(self._untold) + len(data) > self._told_with_notice:
            self._untold = None
        else:
            self._untold += data

    def _resume(self) -> None:
        if not (self.ended or self.blocked or self._loop.watches(self._fd)):
            try:
                self._loop.watch(self._fd, READABLE, self.read)
            except OSError:  # no memory to watch it
                self._pause()
