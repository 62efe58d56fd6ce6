"""The input of a child: what its writers write, each by its own numbers, whole, in order and only once."""

from __future__ import annotations

import errno
import os
from collections import deque

from .loop import WRITABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .loop import EventLoop

MAX_WAITING = 8 << 20
MAX_WRITERS = 1024
RETRY = 0.1  # seconds until a refused write to the child is tried again


class InputGap(OSError):
    """A number came before the one that should precede it."""

    def __init__(self, last: int) -> None:
        super().__init__(errno.ERANGE, f"the last number taken is {last}")
        self.last = last


class NumberedInput:
    def __init__(self, fd: int, loop: EventLoop) -> None:
        self.numbers: dict[str, int] = {}  # last number of each writer, the one longest silent first
        self._fd = fd
        self._loop = loop
        self._queue: deque[memoryview] = deque()
        self._waiting = 0
        self._closing = False
        self._pausing = False  # a timer runs, because a write was refused

    def take(self, writer: str, number: int, data: bytes) -> int:
        """The last number of this writer, after this one was taken, or ignored as a repeat."""
        last = self.numbers.get(writer, 0)
        if number > last + 1:
            raise InputGap(last)
        if number == last + 1:
            self._put(data)
            last = number
        self.numbers.pop(writer, None)
        self.numbers[writer] = last
        if len(self.numbers) > MAX_WRITERS:
            del self.numbers[next(iter(self.numbers))]
        return last

    def close_after_rest(self) -> None:
        self._closing = True
        self._settle()

    def close(self) -> None:
        if self._fd >= 0:
            self._queue.clear()
            self._waiting = 0
            self._loop.unwatch(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _put(self, data: bytes) -> None:
        if self._fd < 0 or self._closing:
            raise OSError(errno.EPIPE, "its input is closed")
        if self._waiting > MAX_WAITING:
            raise OSError(errno.EAGAIN, f"{self._waiting} bytes wait for it already")
        if not self._queue:
            written = self._write(data)
            if written == len(data):
                return
            data = data[written:]
        if data:
            self._queue.append(memoryview(data))
            self._waiting += len(data)
            self._settle()

    def _write(self, data: bytes | memoryview) -> int:
        """How much of it the child has, or never will."""
        try:
            return os.write(self._fd, data) if data else 0
        except BlockingIOError:
            return 0
        except BrokenPipeError:  # the child has closed its input and lives on
            self.close()
            return len(data)
        except OSError:  # no memory, for example: its bytes are kept
            self._pause()
            return 0

    def _pause(self) -> None:
        if not self._pausing:
            self._pausing = True
            self._loop.later(RETRY, self._go_on)

    def _go_on(self) -> None:
        self._pausing = False
        self._settle()

    def _write_more(self, _mask: int) -> None:
        """There is room for what waits."""
        data = self._queue.popleft()
        written = self._write(data)
        if self._fd < 0:
            return
        self._waiting -= written
        if written < len(data):
            self._queue.appendleft(data[written:])
        self._settle()

    def _settle(self) -> None:
        """Wait for room exactly while something waits for it."""
        if self._fd < 0:
            return
        if self._queue:
            self._await_room()
        elif self._closing:
            self.close()
        else:
            self._loop.unwatch(self._fd)

    def _await_room(self) -> None:
        if self._pausing:
            self._loop.unwatch(self._fd)
        elif not self._loop.watches(self._fd):
            try:
                self._loop.watch(self._fd, WRITABLE, self._write_more)
            except OSError:  # no memory to watch it
                self._pause()
