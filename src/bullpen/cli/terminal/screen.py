"""What is drawn on the person's terminal: history, output, and a word from us when the server is away.

One writer at a time, so that a notice never falls into the middle of a sequence.
"""

import asyncio
from collections.abc import Callable

from ...client import HistoryFrame
from .depth import UsedRows
from .filter import OutputFilter
from .tty import Tty

_CLEAR = b"\x1b[H\x1b[2J"
_SAVE_TITLE, _RESTORE_TITLE = b"\x1b[22;0t", b"\x1b[23;0t"
_TO_ALTERNATE = b"\x1b[?1049h"


class LocalScreen:
    """A terminal that can be given back as it was."""

    def __init__(self, tty: Tty) -> None:
        self._tty = tty
        self._filter = OutputFilter()
        self._lock = asyncio.Lock()
        self._depth: UsedRows | None = None  # until a history is drawn
        self._spoilt = False  # a notice covers the last row until a new history is drawn
        self._hint = ""  # what the last row shows while it is blank and the person has not typed

    async def begin(self) -> None:
        await self._tty.write(_SAVE_TITLE)

    async def draw(self, data: bytes) -> None:
        async with self._lock:
            if shown := self._filter.feed(data):
                if self._depth is not None:
                    self._depth.feed(shown)
                await self._tty.write(self._last_row(b"") + shown if self._hint else shown)
                await self._draw_hint()

    async def draw_history(self, history: HistoryFrame) -> None:
        """Draws a whole screen. What was shown before scrolls away; nothing of it is lost."""
        async with self._lock:
            if self._filter.modes.alternate and _TO_ALTERNATE in history.data:
                # Still the same full-screen program: what scrolled by before it is on the other screen.
                data = history.data.replace(_TO_ALTERNATE, _TO_ALTERNATE + _CLEAR)
                await self._tty.write(_CLEAR + self._filter.feed(data))
            else:
                away = _CLEAR if self._spoilt else self._scroll_away()
                shown = self._filter.restore() + away + self._filter.feed(history.data)
                await self._tty.write(shown)
            self._spoilt = False
            self._depth = UsedRows(history.data, self._tty.size()[1])
            await self._draw_hint()

    def set_hint(self, text: str) -> None:
        """Show a dim line at the bottom from the next drawing on, while that row is blank."""
        self._hint = text

    async def hide_hint(self) -> None:
        async with self._lock:
            if self._hint:
                self._hint = ""
                if self._has_room():
                    await self._tty.write(self._last_row(b""))

    async def show_notice(self, text: str, unless: Callable[[], bool]) -> bool:
        """Cover the last row with a dim line, unless it is not needed any more when the lock is free.

        Return whether it was drawn. Only a new history then brings back what it covers.
        """
        async with self._lock:
            if unless():
                return False
            self._hint, self._spoilt = "", True
            await self._tty.write(self._last_row(text.encode()))
            return True

    async def restore(self) -> None:
        """Gives the terminal back, with the cursor below everything."""
        async with self._lock:
            _, rows = self._tty.size()
            cleared = self._last_row(b"") if self._hint and self._has_room() else b""
            goodbye = b"\x1b[%d;1H\r\n" % rows + _RESTORE_TITLE
            await self._tty.write(cleared + self._filter.restore() + goodbye)

    def _scroll_away(self) -> bytes:
        _, rows = self._tty.size()
        return b"\x1b[%d;1H%b\x1b[H" % (rows, b"\n" * rows)

    async def _draw_hint(self) -> None:
        if self._hint and self._has_room():
            await self._tty.write(self._last_row(self._hint.encode()))
        else:
            self._hint = ""

    def _has_room(self) -> bool:
        if self._depth is None or self._filter.modes.alternate:
            return False
        return self._depth.leaves_room(*self._tty.size())

    def _last_row(self, text: bytes) -> bytes:
        """Return what replaces the last row, and leaves cursor and colours as they are."""
        cols, rows = self._tty.size()
        shown = b"\x1b[0;2;7m%b" % text[: cols - 1] if text else b""
        return b"\x1b7\x1b[%d;1H%b\x1b[0m\x1b[K\x1b8" % (rows, shown)
