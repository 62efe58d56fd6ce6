"""What is drawn on the person's terminal: history, output, and a word from us when the server is away.

One writer at a time, so that a notice never falls into the middle of a sequence.
"""

import asyncio
from collections.abc import Callable

from ...client import History
from .filter import Filter
from .tty import Tty

_CLEAR = b"\x1b[H\x1b[2J"
_SAVE_TITLE, _RESTORE_TITLE = b"\x1b[22;0t", b"\x1b[23;0t"
_TO_ALTERNATE = b"\x1b[?1049h"


class Screen:
    """A terminal that can be given back as it was."""

    def __init__(self, tty: Tty) -> None:
        self._tty = tty
        self._filter = Filter()
        self._lock = asyncio.Lock()
        self._pushed = False  # everything is one row up, to make room for a notice

    async def begin(self) -> None:
        await self._tty.write(_SAVE_TITLE)

    async def draw(self, data: bytes) -> None:
        async with self._lock:
            if shown := self._filter.feed(data):
                await self._tty.write(shown)

    async def draw_history(self, history: History) -> None:
        """Draws a whole screen. What was shown before scrolls away; nothing of it is lost."""
        async with self._lock:
            self._pushed = False
            if self._filter.modes.alternate and _TO_ALTERNATE in history.data:
                # Still the same full-screen program: what scrolled by before it is on the other screen.
                data = history.data.replace(_TO_ALTERNATE, _TO_ALTERNATE + _CLEAR)
                await self._tty.write(_CLEAR + self._filter.feed(data))
            else:
                await self._tty.write(self._filter.restore() + self._scroll_away())
                await self._tty.write(self._filter.feed(history.data))

    async def show_notice(self, text: str, unless: Callable[[], bool]) -> bool:
        """A dim line at the bottom, unless there is no need for it any more when our turn comes.

        True when it covers something that only a new history brings back.
        """
        async with self._lock:
            if unless():
                return False
            covers = self._filter.modes.alternate
            self._pushed = not covers
            cols, rows = self._tty.size()
            room = b"" if covers else b"\x1b[%d;1H\n" % rows
            line = text[: cols - 1].encode()
            await self._tty.write(b"\x1b7%b\x1b[%d;1H\x1b[0;2;7m%b\x1b[0m\x1b[K\x1b8" % (room, rows, line))
            return covers

    async def hide_notice(self) -> None:
        """Takes the notice away; one that covers something goes when that is drawn anew."""
        async with self._lock:
            if self._pushed:
                self._pushed = False
                _, rows = self._tty.size()
                await self._tty.write(b"\x1b7\x1b[%d;1H\x1b[0m\x1b[2K\x1b[T\x1b8" % rows)

    async def restore(self) -> None:
        """Gives the terminal back, with the cursor below everything."""
        async with self._lock:
            _, rows = self._tty.size()
            await self._tty.write(self._filter.restore() + b"\x1b[%d;1H\r\n" % rows + _RESTORE_TITLE)

    def _scroll_away(self) -> bytes:
        _, rows = self._tty.size()
        return b"\x1b[%d;1H%b\x1b[H" % (rows, b"\n" * rows)
