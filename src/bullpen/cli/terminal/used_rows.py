"""Bound the used rows of a terminal without an emulator, to tell whether the last row is certainly blank."""

import re

_BLANK_ROWS = re.compile(rb"((?:\r\n)+)\x1b\[\d+;\d+H")  # after the text of a history, before its cursor
_TO_ROW = re.compile(rb"\x1b\[(\d*)(?:;\d*)?[Hfd]")
# Moves down, scrolling, margins, another screen, a reset: their effect needs an emulator.
_UNKNOWN = re.compile(rb"\x1b\[\d*[BELMSTe]|\x1b\[[\d;]*r|\x1b\[\?(?:47|1047|1049)h|\x1b[cDE]")


class UsedRows:
    """An upper bound of the rows in use after drawing a history and the output that followed it."""

    def __init__(self, history: bytes, rows: int) -> None:
        blank = _BLANK_ROWS.search(history)
        self._lowest = max([rows - len(blank[1]) // 2 if blank else rows, *_rows(history)])
        self._newlines = self._bytes = 0
        self._known = True

    def feed(self, output: bytes) -> None:
        """Count output that was drawn."""
        self._newlines += output.count(b"\n")
        self._bytes += len(output)  # at least as many as columns
        self._lowest = max([self._lowest, *_rows(output)])
        self._known = self._known and not _UNKNOWN.search(output)

    def leaves_room(self, cols: int, rows: int) -> bool:
        """Return whether the last row of a terminal of this size is certainly blank."""
        return self._known and self._lowest + self._newlines + self._bytes // cols < rows


def _rows(data: bytes) -> list[int]:
    """Return the rows to which the cursor was moved."""
    return [int(row or 1) for row in _TO_ROW.findall(data)]
