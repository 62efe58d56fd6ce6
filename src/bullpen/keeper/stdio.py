"""Make what a child gets as descriptors 0, 1 and 2: a pseudo-terminal, or three pipes."""

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
    """A pseudo-terminal for one child.

    The keeper holds its slave open until the exit, so that the child may close it and open it again.
    """

    def __init__(self, cols: int, rows: int) -> None:
        with _closed_on_failure() as opened:
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

    def file_actions(self) -> list[tuple[Any, ...]]:
        """Return the file actions for `posix_spawn`."""
        # Opened by path after setsid, the terminal becomes the controlling terminal.
        return [
            (os.POSIX_SPAWN_OPEN, 0, self.name, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        ]

    def resize(self, cols: int, rows: int) -> None:
        """Set the window size of the terminal; the kernel then signals the program."""
        with _as_os_error():
            termios.tcsetwinsize(self._slave, (rows, cols))
        self.size = (cols, rows)

    def on_started(self) -> None:
        pass

    def on_ended(self) -> None:
        """Close the keeper's descriptor of the slave."""
        os.close(self._slave)


class PipeStdio:
    """Three pipes for one child: its stdin, stdout and stderr."""

    name: str | None = None
    size = (0, 0)

    def __init__(self) -> None:
        with _closed_on_failure() as opened:
            for _ in range(3):
                opened.extend(os.pipe())
            child_in, self.input, out, child_out, err, child_err = opened
            os.set_blocking(self.input, False)
        self.outputs = {"out": out, "err": err}
        self._child_fds = (child_in, child_out, child_err)

    def file_actions(self) -> list[tuple[Any, ...]]:
        """Return the file actions for `posix_spawn`."""
        return [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(self._child_fds)]

    def resize(self, cols: int, rows: int) -> None:
        """Raise OSError: pipes have no window size."""
        raise OSError(errno.ENOTTY, f"the child has no terminal to resize to {cols}x{rows}")

    def on_started(self) -> None:
        """Close the ends that the child has inherited."""
        for fd in self._child_fds:
            os.close(fd)

    def on_ended(self) -> None:
        pass


@contextmanager
def _closed_on_failure() -> Iterator[list[int]]:
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
    """Raise OSError in place of `termios.error`, which is no subclass of it."""
    try:
        yield
    except termios.error as error:
        raise OSError(*error.args) from None
