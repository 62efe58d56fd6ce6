"""Put the user's terminal into raw mode, read its keys, and restore it afterwards."""

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...domain.errors import Invalid

_READ_BYTES = 64 * 1024
_END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Tty:
    """The terminal of standard input and output.

    If either is not a terminal, the constructor raises Invalid with `advice` for the user.
    """

    def __init__(self, advice: str) -> None:
        self._input = sys.stdin.fileno()
        self._output = sys.stdout.fileno()
        if not (os.isatty(self._input) and os.isatty(self._output)):
            raise Invalid(f"this needs a terminal; {advice}")

    def size(self) -> tuple[int, int]:
        """Return columns and rows; 80 × 24 if the terminal does not know its size."""
        cols, rows = os.get_terminal_size(self._output)
        return cols or 80, rows or 24

    async def write(self, data: bytes) -> None:
        """Write in a thread, because a paused terminal blocks the writer; the event loop must go on."""
        await asyncio.to_thread(self._write_all, data)

    def _write_all(self, data: bytes) -> None:
        """Write all bytes, blocking."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._output, view) :]

    @contextmanager
    def raw(self) -> Iterator[None]:
        """Put the terminal into raw mode inside the `with` block, so that every key is read unchanged."""
        before = termios.tcgetattr(self._input)
        tty.setraw(self._input, termios.TCSADRAIN)
        try:
            yield
        finally:
            termios.tcsetattr(self._input, termios.TCSADRAIN, before)

    @contextmanager
    def listening(self, on_input: Callable[[bytes], None], on_resize: Callable[[], None]) -> Iterator[None]:
        """Call back for typed bytes and for a new size; empty bytes mean the end or a signal to end."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            try:
                data = os.read(self._input, _READ_BYTES)
            except OSError:
                data = b""
            if not data:
                loop.remove_reader(self._input)
            on_input(data)

        loop.add_reader(self._input, read)
        loop.add_signal_handler(signal.SIGWINCH, on_resize)
        for number in _END_SIGNALS:
            loop.add_signal_handler(number, on_input, b"")
        try:
            yield
        finally:
            for number in (signal.SIGWINCH, *_END_SIGNALS):
                loop.remove_signal_handler(number)
            loop.remove_reader(self._input)
