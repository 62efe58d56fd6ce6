"""What a child has on its descriptors 0, 1 and 2: a terminal, or three pipes."""

from __future__ import annotations

import errno
import os
import termios
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_IUTF8 = 0o40000  # not in termios before Python 3.13


class PtyStdio:
    """A pty. Its slave stays open here until the exit, so that a child may close it and open it again."""

    def __init__(self, cols: int, rows: int) -> None:
        with _undone_on_failure() as opened:
            master, self._slave = os.openpty()
            opened.extend((master, self._slave))
            self.input = os.dup(master)
            opened.append(self.input)
            os.set_blocking(self.input, False)
            self.outputs = {"out": master}
            self.name: str | None = os.ttyname(self._slave)
            with _as_os_error():
                attributes = termios.tcgetattr(master)
                attributes[0] |= _IUTF8
                termios.tcsetattr(master, termios.TCSANOW, attributes)
            self.resize(cols, rows)

    def actions(self) -> list[tuple[Any, ...]]:
        # opened by path after setsid, which makes it the controlling terminal
        return [
            (os.POSIX_SPAWN_OPEN, 0, self.name, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        ]

    def resize(self, cols: int, rows: int) -> None:
        with _as_os_error():
            termios.tcsetwinsize(self._slave, (rows, cols))
        self.size = (cols, rows)

    def started(self) -> None:
        pass

    def ended(self) -> None:
        os.close(self._slave)


class PipeStdio:
    name: str | None = None
    size = (0, 0)

    def __init__(self) -> None:
        with _undone_on_failure() as opened:
            for _ in range(3):
                opened.extend(os.pipe())
            child_in, self.input, out, child_out, err, child_err = opened
            os.set_blocking(self.input, False)
        self.outputs = {"out": out, "err": err}
        self._theirs = (child_in, child_out, child_err)

    def actions(self) -> list[tuple[Any, ...]]:
        return [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(self._theirs)]

    def resize(self, cols: int, rows: int) -> None:
        raise OSError(errno.ENOTTY, f"it has no terminal to make {cols}x{rows}")

    def started(self) -> None:
        for fd in self._theirs:
            os.close(fd)

    def ended(self) -> None:
        pass


@contextmanager
def _undone_on_failure() -> Iterator[list[int]]:
    """Close the descriptors that were added to the list if the block raises."""
    opened: list[int] = []
    try:
        yield opened
    except BaseException:
        for fd in opened:
            os.close(fd)
        raise


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Raise errors of `termios` as OSError, which they are not by themselves."""
    try:
        yield
    except termios.error as error:
        raise OSError(*error.args) from None
