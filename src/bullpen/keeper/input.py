"""Write numbered input to a child: each write of each writer exactly once, whole and in order."""

from __future__ import annotations

import errno
import os
from collections import deque

from .loop import WRITABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .loop import EventLoop

MAX_QUEUED_BYTES = 8 << 20
MAX_WRITERS = 1024
RETRY_SECONDS = 0.1  # until a failed write to the child is tried again


class InputGap(OSError):
    """The number of a write is not the one after the writer's last number."""

    def __init__(self, last: int) -> None:
        super().__init__(errno.ERANGE, f"the last accepted number is {last}")
        self.last = last


class NumberedInput:
    """The standard input or terminal of one child, with a queue for what the child has not read yet."""

    def __init__(self, fd: int, loop: EventLoop) -> None:
        self.numbers: dict[str, int] = {}  # last number of each writer, the least recent writer first
        self._fd = fd
        self._loop = loop
        self._queue: deque[memoryview] = deque()
        self._queued_bytes = 0
        self._closing = False
        self._retrying = False  # a write failed and will be tried again

    def accept(self, writer: str, number: int, data: bytes) -> int:
        """Write the data unless the number is a repeat, and return the writer's last accepted number.

        Raise InputGap if the number is too high.
        """
        last = self.numbers.get(writer, 0)
        if number > last + 1:
            raise InputGap(last)
        if number == last + 1:
            self._enqueue(data)
            last = number
        self.numbers.pop(writer, None)
        self.numbers[writer] = last
        if len(self.numbers) > MAX_WRITERS:
            del self.numbers[next(iter(self.numbers))]
        return last

    def close_when_written(self) -> None:
        """Close the input after the queue is written."""
        self._closing = True
        self._update_watch()

    def close(self) -> None:
        """Drop what is queued, and close the descriptor; closing it again does nothing."""
        if self._fd >= 0:
            self._queue.clear()
            self._queued_bytes = 0
            self._loop.unwatch(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _enqueue(self, data: bytes) -> None:
        """Write as much as the child reads now, and queue the rest.

        Raise OSError if too much is queued already, or the input is closed.
        """
        if self._fd < 0 or self._closing:
            raise OSError(errno.EPIPE, "its input is closed")
        if self._queued_bytes > MAX_QUEUED_BYTES:
            raise OSError(errno.EAGAIN, f"{self._queued_bytes} bytes wait for it already")
        if not self._queue:
            written = self._write(data)
            if written == len(data):
                return
            data = data[written:]
        if data:
            self._queue.append(memoryview(data))
            self._queued_bytes += len(data)
            self._update_watch()

    def _write(self, data: bytes | memoryview) -> int:
        """Return how many bytes are done with: written, or dropped because the child has closed its input."""
        try:
            return os.write(self._fd, data) if data else 0
        except BlockingIOError:
            return 0
        except BrokenPipeError:  # the child has closed its input and lives on
            self.close()
            return len(data)
        except OSError:  # no memory, for example: the bytes stay in the queue
            self._retry_later()
            return 0

    def _retry_later(self) -> None:
        """Schedule one more attempt to write or to watch the descriptor, unless one is scheduled."""
        if not self._retrying:
            self._retrying = True
            self._loop.call_later(RETRY_SECONDS, self._retry)

    def _retry(self) -> None:
        """Watch the descriptor again after a pause."""
        self._retrying = False
        self._update_watch()

    def _write_more(self, _mask: int) -> None:
        """Write the first piece of the queue: the descriptor is writable."""
        data = self._queue.popleft()
        written = self._write(data)
        if self._fd < 0:
            return
        self._queued_bytes -= written
        if written < len(data):
            self._queue.appendleft(data[written:])
        self._update_watch()

    def _update_watch(self) -> None:
        """Watch the descriptor for writability exactly while the queue is not empty."""
        if self._fd < 0:
            return
        if self._queue:
            self._watch_writable()
        elif self._closing:
            self.close()
        else:
            self._loop.unwatch(self._fd)

    def _watch_writable(self) -> None:
        """Call `_write_more` once the child reads again; while a retry is scheduled, do not watch."""
        if self._retrying:
            self._loop.unwatch(self._fd)
        elif not self._loop.watches(self._fd):
            try:
                self._loop.watch(self._fd, WRITABLE, self._write_more)
            except OSError:  # no memory to watch it
                self._retry_later()
