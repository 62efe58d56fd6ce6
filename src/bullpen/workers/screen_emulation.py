"""Combine an emulated terminal with its position in a recording and the number of its replies."""

import re
from typing import NamedTuple

from .ghostty import EmulatedTerminal, GhosttyError
from .saved_screens import ScreenPosition
from .screen_history import render, render_without_clone, unwrap_cursor_line
from .screen_replies import QueryReply

MAX_COLS, MAX_ROWS = 1000, 500
HEAD_BYTES = 64  # the start of an endless sequence, which tells its kind
CANCEL = b"\x18"
RESTART = re.compile(rb"\r?\n|\x1b")


class ScreenHistory(NamedTuple):
    """The bytes that make an empty terminal of this size show the screen at this offset."""

    offset: int
    cols: int
    rows: int
    data: bytes


class ScreenEmulation:
    """One emulated terminal and its position in the recording that it is fed."""

    def __init__(self, terminal: EmulatedTerminal, position: ScreenPosition) -> None:
        self.terminal = terminal
        self.position = position
        self._head = b""
        self._is_lost = False  # the next byte may be inside a sequence or a line
        self._remember_head()

    @classmethod
    def blank(cls, cols: int, rows: int) -> "ScreenEmulation":
        """Return an empty terminal at the start of a recording."""
        return cls(EmulatedTerminal(*_bounded(cols, rows)), ScreenPosition(0))

    def feed(self, data: bytes, covers: int) -> list[QueryReply]:
        """Feed output and return the replies. `data` stands for `covers` bytes of the recording."""
        if not covers:
            return []
        if self._is_lost:
            data, self._is_lost = _from_restart(data), False
        replies = self.terminal.feed(data)
        self._remember_head()
        return self._move(ScreenPosition(self.position.offset + covers, self.position.replies), replies)

    def resize(self, cols: int, rows: int) -> list[QueryReply]:
        """Resize the terminal and return its replies: some programs want a report of the size."""
        size = _bounded(cols, rows)
        self.terminal.feed(unwrap_cursor_line(self.terminal, size[0]))
        replies = self.terminal.resize(*size)
        return self._move(self.position._replace(resizes=self.position.resizes + 1), replies)

    def skip_to(self, offset: int, cols: int, rows: int, answered: int) -> None:
        """Skip a gap in the recording. Modes and rows stay; `answered` replies were given by then."""
        self.terminal.feed(CANCEL)
        self.terminal.resize(*_bounded(cols, rows))
        self.position = ScreenPosition(offset, max(self.position.replies, answered))
        self._is_lost = True
        self._remember_head()

    def history(self) -> ScreenHistory:
        """Return the bytes that make an empty terminal show this screen."""
        terminal = self.terminal
        try:
            data = render(terminal, self._head)
        except GhosttyError:  # inside a sequence too long to be kept; a viewer skips it if it gets the head
            data = render_without_clone(terminal, self._head)
        return ScreenHistory(self.position.offset, terminal.cols, terminal.rows, data)

    def _move(self, position: ScreenPosition, replies: list[bytes]) -> list[QueryReply]:
        """Set the position and number the replies."""
        self.position = position._replace(replies=position.replies + len(replies))
        return [QueryReply(n, data) for n, data in enumerate(replies, position.replies + 1)]

    def _remember_head(self) -> None:
        """Keep the start of the sequence that the terminal is inside of."""
        if self.terminal.is_ground:
            self._head = b""
        elif (begun := self.terminal.continuation()) is not None:
            self._head = begun[:HEAD_BYTES]


def _from_restart(data: bytes) -> bytes:
    """Return the data from the next line end or escape sequence on."""
    found = RESTART.search(data)
    return data[found.start() :] if found else data


def _bounded(cols: int, rows: int) -> tuple[int, int]:
    """Limit a size to what the emulator supports."""
    return min(max(cols, 1), MAX_COLS), min(max(rows, 1), MAX_ROWS)
