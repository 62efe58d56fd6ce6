"""Read one output of a child (terminal, stdout or stderr) and append it to its spool, one chunk at a time."""

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

READ_BYTES = 64 << 10  # at most, in one read
FULL_PIPE_BYTES = 32 << 10  # after a read this long the pipe was full or nearly so: its writer is blocked
FLOOD_READ_BYTES = 2 << 10  # a read of a terminal this long means that more is coming
PTY_PAGE_BYTES = 4095  # all that a terminal holds: after a read this long the next page is on its way
MAX_FLOOD_READ_BYTES = 16 << 10  # of one flood, until the other descriptors are looked at
FLOOD_WRITE_BYTES = 64 << 10  # of a flood are collected for one write: writing each page would cost more
FLOOD_BUFFER_BYTES = FLOOD_WRITE_BYTES + READ_BYTES
MAX_HOLD_SECONDS = 0.008  # output of a flood may be held for so long, to be written with what follows
MAX_NOTICE_BYTES = 2 << 10  # output this short is sent to the server with the notice of it
MAX_UNCONSUMED_BYTES = 128 << 20  # of stdout; then the child has to wait
INDEX_SECONDS = 1.0  # the indexes of all streams are written at the same moments
RETRY_SECONDS = 1.0  # until a failed write to the spool is tried again
_MAX_DRAIN_READS = 64  # together more than a pipe can hold
_NO_LIMIT = 1 << 62
NOT_AWAITED = 1 << 62  # greater than any offset


class OutputStream:
    """One output of a child. It stops reading while the disk refuses writes or too much is unconsumed."""

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
        """`grown` collects the streams that have grown since the last notice to the server.

        `window` limits the unconsumed bytes; None means no limit.
        """
        self.label = to_json(key)[:-1] + ","  # as a notice names the stream, before its end
        self.on_terminal = on_terminal
        self.spool = spool
        self.awaited_from = NOT_AWAITED  # the end at the last input, until there is output after it
        self._fd = fd
        self._loop = loop
        self._grown = grown
        self._on_end = on_end
        self._window = self._limit = _NO_LIMIT if window is None else window
        self._index_scheduled = False
        self._buffer: memoryview | None = None  # during a flood
        self._filled = 0  # bytes of the buffer that are not in the spool yet
        self._hold_scheduled = False
        self._max_notice_bytes = MAX_NOTICE_BYTES if on_terminal else 0
        self._unsent: bytes | None = b""  # output the server has not been sent; None: too long to be sent
        self.hung_up = False  # the child has exited: EIO means that no more output will come
        self._retrying = False  # a read failed and will be tried again
        os.set_blocking(fd, False)
        loop.watch(fd, READABLE, self.read)

    @property
    def ended(self) -> bool:
        """Whether the stream is closed: all of its output has been read."""
        return self._fd < 0

    @property
    def blocked(self) -> bool:
        """Whether nothing is read now: the disk or the kernel refuses, or too much is unconsumed."""
        return self._retrying or bool(self.spool.unwritten) or self.spool.end >= self._limit

    def read(self, mask: int = READABLE) -> bool:
        """Read what is available, at most one chunk; return False if there was nothing."""
        if self._buffer is not None:
            return self._read_flood(mask, self._buffer)
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError as error:
            if not self._is_hangup(error):
                self._retry_later()
                return False
            data = b""
        if not data:
            self._end()
            return False
        if self.on_terminal and len(data) >= FLOOD_READ_BYTES:
            self._buffer = memoryview(bytearray(FLOOD_BUFFER_BYTES))
            self._loop.start_flood(self._fd, self._end_flood)
        elif len(data) >= FULL_PIPE_BYTES:
            self._loop.skip_coalescing()
        self._store(data)
        return True

    def _read_flood(self, mask: int, buffer: memoryview) -> bool:
        """Read a flood into one buffer, which saves allocations: it may bring 20,000 pages a second."""
        before = filled = self._filled
        enough = before + (0 if self._loop.expects_answer else MAX_FLOOD_READ_BYTES)
        try:
            while True:
                filled += (size := os.readv(self._fd, (buffer[filled:],)))
                if size < PTY_PAGE_BYTES or filled >= enough:
                    break
        except BlockingIOError:
            size = filled - before
            if not size:
                return False
        except OSError as error:
            size = filled - before
            if not size and not self._is_hangup(error):
                self._retry_later()
                return False
        self._filled = filled
        if not size:
            self._end()
            return False
        if mask != READABLE or filled == FLOOD_BUFFER_BYTES:  # a hang-up, or there may be more to read
            self._loop.end_flood(self._fd)
        elif not self._can_hold():
            self.write_held()
        return True

    def _is_hangup(self, error: OSError) -> bool:
        """Return whether the terminal was hung up. Until the child's exit the keeper has it open itself."""
        return error.errno == errno.EIO and self.on_terminal and self.hung_up

    def _retry_later(self) -> None:
        """Stop reading for a while: the kernel cannot read now (no memory, for example). Nothing is lost."""
        self._retrying = True
        self._loop.unwatch(self._fd)
        self._loop.call_later(RETRY_SECONDS, self._retry)

    def _retry(self) -> None:
        """Read again after a pause, unless something else blocks the stream."""
        self._retrying = False
        self._resume()

    def _end_flood(self) -> None:
        """Write what is held, and free the buffer."""
        self.write_held()
        self._buffer = None

    def write_held(self) -> None:
        """Append the output that is held in the buffer to the spool, where it may wait for the disk."""
        if self._buffer is not None and self._filled:
            read, self._filled = self._buffer[: self._filled], 0
            self._store(read)

    def _store(self, data: bytes | memoryview) -> None:
        """Append output to the spool; stop reading if the disk refuses or too much is unconsumed."""
        before = self.spool.end
        try:
            end = self.spool.append(data)
        except OSError:
            self._loop.unwatch(self._fd)
            self._loop.call_later(RETRY_SECONDS, self._flush)
            if self.spool.end > before:
                self._note_growth(None)
            return
        self._note_growth(data)
        if self.spool.unindexed and not self._index_scheduled:
            self._schedule_index()
        if end >= self._limit:
            self._loop.unwatch(self._fd)

    def _can_hold(self) -> bool:
        """Return whether the output in the buffer may wait for more; schedule its write if so."""
        if self._filled >= FLOOD_WRITE_BYTES or self._loop.expects_answer:
            return False
        if not self._hold_scheduled:
            self._hold_scheduled = True
            self._loop.call_later(MAX_HOLD_SECONDS, self._end_hold)
        return True

    def _end_hold(self) -> None:
        """Write the output that was held back for more to arrive."""
        self._hold_scheduled = False
        self.write_held()

    def _end(self) -> None:
        """Close the stream, unless output still waits for the disk: all of it has been read."""
        self.write_held()
        if not self.spool.unwritten:
            self.close()

    def take_unsent(self) -> bytes:
        """Return the output that the server has not been sent, or nothing if it is too long to be sent."""
        unsent, self._unsent = self._unsent, b""
        return unsent or b""

    def consumed(self, offset: int) -> None:
        """Free the spool below `offset`, and read again if the child had to wait."""
        self.spool.drop_before(offset)
        self._limit = self.spool.consumed + self._window
        self._resume()

    def drain(self) -> None:
        """Read what the kernel still holds and close; when blocked, read only as far as possible."""
        for _ in range(_MAX_DRAIN_READS):
            if self.blocked:
                return
            if not self.read():
                break
        self._end()

    def close(self) -> None:
        """Stop reading, complete the index, and report the end; does nothing after the end."""
        if not self.ended:
            self._loop.unwatch(self._fd)
            os.close(self._fd)
            self._fd = -1
            self._write_index()
            self._on_end()

    def _flush(self) -> None:
        """Write to the spool what the disk refused, and read again when that is done."""
        end = self.spool.end
        try:
            self.spool.flush()
        except OSError:
            self._loop.call_later(RETRY_SECONDS, self._flush)
        if self.spool.end > end:
            self._note_growth(None)
        self._resume()

    def _schedule_index(self) -> None:
        """Schedule the next index entry at the next full interval of the clock, shared by all streams."""
        self._index_scheduled = True
        self._loop.call_later(INDEX_SECONDS - monotonic() % INDEX_SECONDS, self._write_index)

    def _write_index(self) -> None:
        """Write the index entries; try again later if the disk refuses."""
        self._index_scheduled = False
        try:
            self.spool.write_index()
        except OSError:
            self._schedule_index()

    def _note_growth(self, data: bytes | memoryview | None) -> None:
        """Remember that the server has to be notified; `data` is None if only the spool has the output."""
        self._grown.add(self)
        if data is None or self._unsent is None or len(self._unsent) + len(data) > self._max_notice_bytes:
            self._unsent = None
        else:
            self._unsent += data

    def _resume(self) -> None:
        """Watch the descriptor again, if nothing blocks the stream."""
        if not (self.ended or self.blocked or self._loop.watches(self._fd)):
            try:
                self._loop.watch(self._fd, READABLE, self.read)
            except OSError:  # no memory to watch it
                self._retry_later()
