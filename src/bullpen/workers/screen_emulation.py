"""A terminal at a certain place of a recording: it knows how much it was fed and what it replied."""

import re
from typing import NamedTuple

from .ghostty import EmulatedTerminal, GhosttyError
from .screen_history import render, render_without_clone, unwrap_cursor_line
from .screen_replies import QueryReply
from .screen_saved import SavedPosition

MAX_COLS, MAX_ROWS = 1000, 500
HEAD = 64  # bytes of an endless sequence that tell what kind it is
ABORT = b"\x18"
NEW_BEGINNING = re.compile(rb"\r?\n|\x1b")


class ScreenHistory(NamedTuple):
    """What a fresh terminal of this size must be fed to show the screen at this offset."""

    offset: int
    cols: int
    rows: int
    data: bytes


class ScreenEmulation:
    def __init__(self, terminal: EmulatedTerminal, place: SavedPosition) -> None:
        self.terminal = terminal
        self.place = place
        self._head = b""
        self._is_lost = False  # the next byte may lie inside of anything
        self._remember_head()

    @classmethod
    def blank(cls, cols: int, rows: int) -> "ScreenEmulation":
        return cls(EmulatedTerminal(*_bounded(cols, rows)), SavedPosition(0))

    def feed(self, data: bytes, covers: int) -> list[QueryReply]:
        """`covers`: how many bytes of the recording `data` stands for, when some of them need not be fed."""
        if not covers:
            return []
        if self._is_lost:
            data, self._is_lost = _from_new_beginning(data), False
        replies = self.terminal.feed(data)
        self._remember_head()
        return self._move(SavedPosition(self.place.offset + covers, self.place.replies), replies)

    def resize(self, cols: int, rows: int) -> list[QueryReply]:
        size = _bounded(cols, rows)
        self.terminal.feed(unwrap_cursor_line(self.terminal, size[0]))
        replies = self.terminal.resize(*size)
        return self._move(self.place._replace(resizes=self.place.resizes + 1), replies)

    def leap(self, offset: int, cols: int, rows: int, answered: int) -> None:
        """Crosses a hole in the recording: modes and rows stay as they are known, replies as others know."""
        self.terminal.feed(ABORT)
        self.terminal.resize(*_bounded(cols, rows))
        self.place = SavedPosition(offset, max(self.place.replies, answered))
        self._is_lost = True
        self._remember_head()

    def history(self) -> ScreenHistory:
        terminal = self.terminal
        try:
            data = render(terminal)
        except (
            GhosttyError
        ):  # inside of a sequence too long to be kept; its head tells a viewer to swallow it
            data = render_without_clone(terminal) + self._head
        return ScreenHistory(self.place.offset, terminal.cols, terminal.rows, data)

    def _move(self, place: SavedPosition, replies: list[bytes]) -> list[QueryReply]:
        self.place = place._replace(replies=place.replies + len(replies))
        return [QueryReply(n, data) for n, data in enumerate(replies, place.replies + 1)]

    def _remember_head(self) -> None:
        if self.terminal.is_ground:
            self._head = b""
        elif (begun := self.terminal.continuation()) is not None:
            self._head = begun[:HEAD]


def _from_new_beginning(data: bytes) -> bytes:
    found = NEW_BEGINNING.search(data)
    return data[found.start() :] if found else data


def _bounded(cols: int, rows: int) -> tuple[int, int]:
    return min(max(cols, 1), MAX_COLS), min(max(rows, 1), MAX_ROWS)
