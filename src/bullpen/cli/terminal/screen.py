"""Draw a worker's history and output on the user's terminal, with hints and notices of our own.

A lock allows one writer at a time, so that no notice is written into the middle of an escape sequence.
"""

import asyncio
from collections.abc import Callable

from ...client import HistoryFrame
from .filter import OutputFilter
from .tty import Tty
from .used_rows import UsedRows

_CLEAR = b"\x1b[H\x1b[2J"
_SAVE_TITLE, _RESTORE_TITLE = b"\x1b[22;0t", b"\x1b[23;0t"
_TO_ALTERNATE = b"\x1b[?1049h"


class LocalScreen:
    """The user's terminal while a worker's terminal is shown on it."""

    def __init__(self, tty: Tty) -> None:
        self._tty = tty
        self._filter = OutputFilter()
        self._lock = asyncio.Lock()
        self._used_rows: UsedRows | None = None  # until a history is drawn
        self._is_covered = False  # a notice covers the last row until a new history is drawn
        self._hint = ""  # until the user has typed: in the last row while it is blank, else in the title
        self._is_hint_in_row = False

    async def begin(self) -> None:
        """Save the title of the window."""
        await self._tty.write(_SAVE_TITLE)

    async def draw(self, data: bytes) -> None:
        """Draw output of the program."""
        async with self._lock:
            if shown := self._filter.feed(data):
                if self._used_rows is not None:
                    self._used_rows.feed(shown)
                await self._tty.write(self._last_row(b"") + shown if self._is_hint_in_row else shown)
                await self._draw_hint()

    async def draw_history(self, history: HistoryFrame) -> None:
        """Draw a whole screen. What was shown before scrolls into the scrollback."""
        async with self._lock:
            if self._filter.modes.alternate and _TO_ALTERNATE in history.data:
                # The same full-screen program goes on: the scrollback belongs to the other screen.
                data = history.data.replace(_TO_ALTERNATE, _TO_ALTERNATE + _CLEAR)
                await self._tty.write(_CLEAR + self._filter.feed(data))
            else:
                clear = _CLEAR if self._is_covered else self._scroll_away()
                shown = self._filter.restore() + clear + self._filter.feed(history.data)
                await self._tty.write(shown)
            self._is_covered = False
            self._used_rows = UsedRows(history.data, self._tty.size()[1])
            await self._draw_hint()

    def set_hint(self, text: str) -> None:
        """Set a text that is shown from the next drawing on: in a blank last row, else in the title."""
        self._hint = text

    async def hide_hint(self) -> None:
        """Remove the hint."""
        async with self._lock:
            if removed := self._take_hint():
                await self._tty.write(removed)

    async def show_notice(self, text: str, unless: Callable[[], bool]) -> bool:
        """Cover the last row with a dim text, unless `unless` returns true once the lock is free.

        Return whether it was drawn. Only a new history restores the covered row.
        """
        async with self._lock:
            if unless():
                return False
            self._is_covered = True
            await self._tty.write(self._take_hint() + self._last_row(text.encode()))
            return True

    async def restore(self) -> None:
        """Restore the modes and the title of the terminal, and move the cursor below the output."""
        async with self._lock:
            _, rows = self._tty.size()
            below = b"\x1b[%d;1H\r\n" % rows + _RESTORE_TITLE
            await self._tty.write(self._take_hint() + self._filter.restore() + below)

    def _scroll_away(self) -> bytes:
        """Return what scrolls the whole screen into the scrollback."""
        _, rows = self._tty.size()
        return b"\x1b[%d;1H%b\x1b[H" % (rows, b"\n" * rows)

    async def _draw_hint(self) -> None:
        """Draw the hint in the last row if that is blank, else in the title."""
        if not self._hint:
            return
        self._is_hint_in_row = self._has_room()
        if self._is_hint_in_row:
            await self._tty.write(self._last_row(self._hint.encode()))
        elif not self._filter.holds_titles:
            self._filter.holds_titles = True
            await self._tty.write(b"\x1b]2;%b\x1b\\" % self._hint.strip().encode())

    def _take_hint(self) -> bytes:
        """Forget the hint, and return what removes it from the terminal."""
        row = self._last_row(b"") if self._is_hint_in_row and self._has_room() else b""
        title = (self._filter.title or _RESTORE_TITLE + _SAVE_TITLE) if self._filter.holds_titles else b""
        self._hint, self._is_hint_in_row, self._filter.holds_titles = "", False, False
        return row + title

    def _has_room(self) -> bool:
        """Return whether the last row is certainly blank."""
        if self._used_rows is None or self._filter.modes.alternate:
            return False
        return self._used_rows.leaves_room(*self._tty.size())

    def _last_row(self, text: bytes) -> bytes:
        """Return what replaces the last row without changing the cursor or the colours."""
        cols, rows = self._tty.size()
        shown = b"\x1b[0;2;7m%b" % text[: cols - 1] if text else b""
        return b"\x1b7\x1b[%d;1H%b\x1b[0m\x1b[K\x1b8" % (rows, shown)
