"""What a child has on its descriptors 0, 1 and 2: a terminal, or three pipes."""

from __future__ import annotations

import errno
import os
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_IUTF8 = 0o40000  # not in termios before Python 3.13


class Terminal:
    """A pty. Its slave stays open here until the exit, so that a child may close it and open it again."""

    def __init__(self, cols: int, rows: int) -> None:
        master, self.input, self._slave = _open_pty()
        self.outputs = {"out": master}
        self.name: str | None = os.ttyname(self._slave)
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
        termios.tcsetwinsize(self._slave, (rows, cols))
        self.size = (cols, rows)

    def started(self) -> None:
        pass

    def ended(self) -> None:
        os.close(self._slave)


class Pipes:
    name: str | None = None
    size = (0, 0)

    def __init__(self) -> None:
        child_in, self.input, out, child_out, err, child_err = _pipes()
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


def _open_pty() -> tuple[int, int, int]:
    """The master twice, to be read and written apart, and the slave."""
    master, slave = os.openpty()
    try:
        return master, os.dup(master), slave
    except OSError:
        os.close(master)
        os.close(slave)
        raise


def _pipes() -> list[int]:
    """Three pipes or none."""
    ends: list[int] = []
    try:
        for _ in range(3):
            ends += os.pipe()
    except OSError:
        for fd in ends:
            os.close(fd)
        raise
    return ends
