"""The terminal this program runs in: raw while it is lent, as it was in every case afterwards."""

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...domain.errors import Invalid

_PIECE = 64 * 1024
_FAREWELLS = (signal.SIGTERM, signal.SIGHUP)


class Tty:
    """Standard input and output, which must both be a terminal."""

    def __init__(self, otherwise: str) -> None:
        self._input = sys.stdin.fileno()
        self._output = sys.stdout.fileno()
        if not (os.isatty(self._input) and os.isatty(self._output)):
            raise Invalid(f"this needs a terminal; {otherwise}")

    def size(self) -> tuple[int, int]:
        """Columns and rows; a terminal that does not know says 80 × 24."""
        cols, rows = os.get_terminal_size(self._output)
        return cols or 80, rows or 24

    async def write(self, data: bytes) -> None:
        """In a thread, because a paused terminal blocks and the connection must live on meanwhile."""
        await asyncio.to_thread(self._write_all, data)

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._output, view) :]

    @contextmanager
    def raw(self) -> Iterator[None]:
        """Every key goes through untouched."""
        before = termios.tcgetattr(self._input)
        tty.setraw(self._input, termios.TCSADRAIN)
        try:
            yield
        finally:
            termios.tcsetattr(self._input, termios.TCSADRAIN, before)

    @contextmanager
    def listening(self, typed: Callable[[bytes], None], resized: Callable[[], None]) -> Iterator[None]:
        """Calls back in the loop for keys and a new size; empty bytes when it is time to go."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            try:
                data = os.read(self._input, _PIECE)
            except OSError:
                data = b""
            if not data:
                loop.remove_reader(self._input)
            typed(data)

        loop.add_reader(self._input, read)
        loop.add_signal_handler(signal.SIGWINCH, resized)
        for number in _FAREWELLS:
            loop.add_signal_handler(number, typed, b"")
        try:
            yield
        finally:
            for number in (signal.SIGWINCH, *_FAREWELLS):
                loop.remove_signal_handler(number)
            loop.remove_reader(self._input)
