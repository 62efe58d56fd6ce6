"""What may be left out of a flood of plain text, because nothing of it would stay.

Text of printable ASCII, tabs and line ends changes no mode and no colour; it only pushes rows out at the
top. Fed from the beginning of any line, its last lines leave the same screen as all of them, when they are
enough to replace every row, scrollback included. (How much scrollback is left above the limit may differ:
the library drops it a page at a time.)
"""

from collections import deque

from .ghostty import SCROLLBACK_MAX_BYTES, EmulatedTerminal

PLAIN = bytes(range(0x20, 0x7F)) + b"\t\r\n"
BYTES_A_CELL = 8  # at least, in the library's memory


def is_plain(block: bytes) -> bool:
    return block.isascii() and b"\x1b" not in block and not block.translate(None, PLAIN)


def forgets(terminal: EmulatedTerminal) -> bool:
    """Whether every row of this terminal goes when enough lines come.

    Inside a scroll region rows outside of it stay, and text below it is written over itself.
    """
    return terminal.is_ground and not terminal.extras("scrolling_region")


def lines_to_forget(terminal: EmulatedTerminal) -> int:
    """How many line ends leave nothing of what was there before them."""
    return SCROLLBACK_MAX_BYTES // (BYTES_A_CELL * terminal.cols) + 4 * terminal.rows


class PlainRun:
    """Plain blocks that follow each other; the oldest go while those that remain are enough."""

    def __init__(self, lines_needed: int) -> None:
        self.size = 0
        self._lines_needed = lines_needed
        self._lines = 0  # in all blocks but the first two
        self._blocks: deque[bytes] = deque()
        self._is_cut = False

    def add(self, block: bytes) -> None:
        self._blocks.append(block)
        self.size += len(block)
        self._lines += block.count(b"\n") if len(self._blocks) > 2 else 0
        while self._lines >= self._lines_needed and b"\r\n" in self._blocks[1]:
            self.size -= len(self._blocks.popleft())
            self._lines -= self._blocks[1].count(b"\n")
            self._is_cut = True

    def text(self) -> bytes:
        """What has to be fed: all of it, or its end from the beginning of a line."""
        text = b"".join(self._blocks)
        return text[text.index(b"\r\n") + 2 :] if self._is_cut else text
