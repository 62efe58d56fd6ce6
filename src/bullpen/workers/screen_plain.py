"""Skip the part of a flood of plain text that would have scrolled out of the scrollback anyway.

Printable ASCII, tabs and line ends change no mode and no colour; they only push rows out at the top. If the
last lines replace every row, scrollback included, then feeding only these leaves the same screen. (How much
scrollback is left above the limit may differ: the library drops it a page at a time.)
"""

from collections import deque

from .ghostty import SCROLLBACK_MAX_BYTES, EmulatedTerminal

PLAIN = bytes(range(0x20, 0x7F)) + b"\t\r\n"
MIN_CELL_BYTES = 8  # in the library's memory


def is_plain(block: bytes) -> bool:
    """Return whether a block has only printable ASCII, tabs and line ends."""
    return block.isascii() and b"\x1b" not in block and not block.translate(None, PLAIN)


def forgets_all_rows(terminal: EmulatedTerminal) -> bool:
    """Return whether enough new lines push every row out of this terminal.

    Not in the middle of an escape sequence, and not with a scroll region: rows outside it stay, and text
    below it overwrites itself.
    """
    return terminal.is_ground and not terminal.extras("scrolling_region")


def lines_to_forget(terminal: EmulatedTerminal) -> int:
    """Return how many line ends push out every row that was there before."""
    return SCROLLBACK_MAX_BYTES // (MIN_CELL_BYTES * terminal.cols) + 4 * terminal.rows


class PlainRun:
    """Consecutive plain blocks. The oldest are dropped while the others have enough lines."""

    def __init__(self, lines_needed: int) -> None:
        self.size = 0
        self._lines_needed = lines_needed
        self._lines = 0  # in all blocks but the first two
        self._blocks: deque[bytes] = deque()
        self._is_cut = False

    def add(self, block: bytes) -> None:
        """Add a block, and drop the oldest ones that are not needed."""
        self._blocks.append(block)
        self.size += len(block)
        self._lines += block.count(b"\n") if len(self._blocks) > 2 else 0
        while self._lines >= self._lines_needed and b"\r\n" in self._blocks[1]:
            self.size -= len(self._blocks.popleft())
            self._lines -= self._blocks[1].count(b"\n")
            self._is_cut = True

    def text(self) -> bytes:
        """Return the text to feed: all of it, or its end from the start of a line."""
        text = b"".join(self._blocks)
        return text[text.index(b"\r\n") + 2 :] if self._is_cut else text
